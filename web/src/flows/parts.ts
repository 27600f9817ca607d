import type { AnyDocument } from "#/api/kinds";

/** What a step has counted. */
export interface StepCounts {
  in: number;
  out: number;
  dropped: number;
  errors: number;
  ms: number;
  /** Spark runs these steps as one: each tells the time of all. */
  shared: boolean;
}

export interface FlowStep {
  id: string;
  type: string | null;
  counts: StepCounts | null;
}

/** A document that a part of a flow stands for. */
export interface PartLink {
  kind: "Source" | "Sink" | "Stream";
  id: string;
}

export interface FlowInput {
  /** What it is called: a type, or the id of a document. */
  label: string;
  type: string | null;
  link: PartLink | null;
}

interface SpecStep {
  id?: string;
  type?: string;
}

/** The steps of a flow in order, with what each has counted; those of tasks it refers to as well. */
export function stepsOf({ spec, ops }: AnyDocument): FlowStep[] {
  const counted = (ops as { processors?: Record<string, StepCounts> } | null | undefined)?.processors ?? {};
  const declared: SpecStep[] = spec?.processors ?? [];
  const types = new Map(declared.map((each) => [each.id ?? each.type ?? "", each.type ?? null]));
  // The flow knows its steps better than the spec, which may name tasks only; before it ran, the spec does.
  const ids = new Set([...types.keys(), ...Object.keys(counted)]);
  return [...ids].map((id) => ({ id, type: types.get(id) ?? null, counts: counted[id] ?? null }));
}

/** Where the events of a flow come from. */
export function inputOf({ kind, spec }: AnyDocument): FlowInput {
  if (kind === "Task") return stream(spec.input);
  if (kind === "Sink") return stream(spec.stream);
  if (kind === "Source") return { label: spec.type, type: spec.type, link: null };
  const source = spec?.source ?? {};
  if (source.ref) return { label: source.ref, type: "source", link: { kind: "Source", id: source.ref } };
  if (source.type === "stream") return stream(source.stream);
  return { label: source.type ?? "?", type: source.type ?? null, link: null };
}

/** The document behind a sink of a flow: the stream it appends to, or the Sink that is referred to. */
export function sinkLink({ kind, spec }: AnyDocument, id: string): PartLink | null {
  if (kind === "Source") return spec.stream ? { kind: "Stream", id: spec.stream } : null;
  const ends: { id?: string; ref?: string; stream?: string }[] = spec.sinks ?? spec.outputs ?? [];
  const end = ends.find((each) => (each.id ?? each.ref ?? each.stream) === id);
  if (end?.ref) return { kind: "Sink", id: end.ref };
  return end?.stream ? { kind: "Stream", id: end.stream } : null;
}

const stream = (id: string): FlowInput => ({ label: id, type: "stream", link: { kind: "Stream", id } });
