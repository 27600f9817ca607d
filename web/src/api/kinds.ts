import type { Schemas } from "./client";

export type KindName = "Pipeline" | "Stream" | "Source" | "Task" | "Sink";
export type Place = "pipelines" | "streams" | "sources" | "tasks" | "sinks";
export type Status = Schemas["PipeInfo"]["status"];

/** A document of any kind as lists and pages show it. */
export type AnyDocument = {
  kind: KindName;
  name: string;
  id: string;
  metadata: Schemas["MetadataInfo"];
  // biome-ignore lint/suspicious/noExplicitAny: what a spec holds is told by the schema of its type
  spec: any;
  revision: number;
  running_revision?: number | null;
  created_at: string;
  updated_at: string;
  status?: Status | null;
  phase?: string | null;
  worker?: string | null;
  error?: Schemas["RunError"] | null;
  attempts?: Schemas["Attempt"][];
  failed_attempts?: number | null;
  ops?: Schemas["Ops"] | null;
  referrers?: Schemas["Referrer"][] | null;
  guarantee?: string | null;
  warnings?: Schemas["Problem"][] | null;
};

export interface Kind {
  name: KindName;
  place: Place;
  title: string;
  one: string;
  /** Whether its documents can run by themselves. */
  runs: boolean;
  about: string;
}

export const KINDS: Record<KindName, Kind> = {
  Pipeline: {
    name: "Pipeline",
    place: "pipelines",
    title: "Pipelines",
    one: "pipeline",
    runs: true,
    about: "A pipeline reads a source, transforms events step by step and delivers them to sinks.",
  },
  Stream: {
    name: "Stream",
    place: "streams",
    title: "Streams",
    one: "stream",
    runs: false,
    about: "A stream is a durable log of events that any number of writers and readers share.",
  },
  Source: {
    name: "Source",
    place: "sources",
    title: "Sources",
    one: "source",
    runs: true,
    about:
      "A source reads events from an external system. If it names a stream, it runs on its own and publishes to that stream.",
  },
  Task: {
    name: "Task",
    place: "tasks",
    title: "Tasks",
    one: "task",
    runs: true,
    about: "A task reads one stream, transforms its events and publishes them to other streams.",
  },
  Sink: {
    name: "Sink",
    place: "sinks",
    title: "Sinks",
    one: "sink",
    runs: true,
    about:
      "A sink delivers events to an external system. If it names a stream, it runs on its own and subscribes to that stream.",
  },
};

export const KIND_LIST = Object.values(KINDS);

export function kindAt(place: string): Kind | undefined {
  return KIND_LIST.find((kind) => kind.place === place);
}

/** The page of a document. */
export function pageOf(kind: KindName, id: string): string {
  return `/${KINDS[kind].place}/${encodeURIComponent(id)}`;
}

/** The page of what a key such as `Pipeline/orders` or `Pipeline/orders#source` names. */
export function pageOfKey(key: string): string {
  const [kind, ...rest] = key.split("#")[0]!.split("/");
  return pageOf(kind as KindName, rest.join("/"));
}

export function keyOf(document: { kind: KindName; id: string }): string {
  return `${document.kind}/${document.id}`;
}
