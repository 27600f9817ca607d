import type { Problem, Schemas } from "#/api/client";
import { KIND_LIST, type Place } from "#/api/kinds";
import { derivedId, viewOf } from "#/builder/parts";
import type { Value } from "#/documents/editing/yaml";

/** The document as it can be tried while it is still being written: without a name, or without a sink. */
export function testable(document: object, place: Place): Record<string, unknown> {
  const value = document as Value;
  const kind = KIND_LIST.find((each) => each.place === place)!.name;
  const sinks = value.spec?.sinks;
  const isOpen = place === "pipelines" && (!Array.isArray(sinks) || sinks.length === 0);
  return {
    ...value,
    kind,
    metadata: { ...value.metadata, name: value.metadata?.name || "untitled" },
    spec: { ...value.spec, ...(isOpen ? { sinks: [{ id: NO_SINK, type: "drop" }] } : {}) },
  };
}

/** Stands for the sink that a pipeline does not have yet. */
export const NO_SINK = "no_sink_yet";

/** A step that can be told what the outside would answer. */
export interface Asking {
  id: string;
  type: string;
  fields: Record<string, unknown>;
  /** What it takes, in the words of its description. */
  about: string;
  /** The run could not go on without it. */
  isNeeded: boolean;
}

/** The steps that ask the outside: those whose description says what they take in a test run, or that were refused. */
export function askingSteps(
  document: object,
  place: Place,
  processors: readonly Schemas["ComponentInfo"][],
  errors: readonly Problem[],
): Asking[] {
  const needed = errors.filter(({ code }) => code === "needs_answer").map(stepNamed);
  const known = viewOf(place, document as Value).steps.flatMap(({ id, type, value }): Asking[] => {
    const about = inTestRun(processors.find((each) => each.type === type)?.description);
    const isNeeded = needed.includes(id);
    return about || isNeeded ? [{ id, type, fields: value, about: about ?? "", isNeeded }] : [];
  });
  // The steps of a task that a pipeline names are not in its document.
  const others = needed.filter((id) => id && !known.some((each) => each.id === id));
  return [
    ...known,
    ...[...new Set(others)].map((id) => ({ id: id!, type: "", fields: {}, about: "", isNeeded: true })),
  ];
}

const stepNamed = ({ message }: Problem) => /the step '([^']+)'/.exec(message)?.[1];

function inTestRun(description: string | undefined): string | null {
  return (
    /In a test run [\s\S]*$/
      .exec(description ?? "")?.[0]
      .replaceAll(/\s+/g, " ")
      .trim() ?? null
  );
}

/** The stream that a document reads, if it reads one. */
export function streamOf(document: object, place: Place): string | null {
  const { spec, metadata } = document as Value;
  const source = spec?.source as { type?: unknown; stream?: unknown } | undefined;
  const named = place === "tasks" ? spec?.input : source?.type === "stream" ? source.stream : null;
  if (named) return derivedId(String(named));
  // What is pushed to a pipeline is kept in a stream of its own.
  return source?.type === "http" && metadata?.name ? `${derivedId(String(metadata.name))}.in` : null;
}

/** A pipeline of nothing but the source: its columns are known, whatever is wrong with the rest. */
export function sourceOnly(document: object, place: Place): object | null {
  const spec = (document as Value).spec ?? {};
  const source = place === "tasks" ? spec.input && { type: "stream", stream: spec.input } : spec.source;
  if (!source) return null;
  return { kind: "Pipeline", metadata: { name: "source" }, spec: { source, sinks: [{ type: "drop" }] } };
}
