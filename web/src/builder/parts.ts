import type { Place } from "#/api/kinds";
import { type Fields, isFields, type Value } from "#/documents/editing/yaml";
import { isAtOrBelow } from "#/forms/paths";

/** What is selected, or has a problem: an end, a step, or the settings of the whole. */
export type PartKey = "settings" | "source" | `step:${number}` | `sink:${number}`;

/** The lists that parts stand in. */
export type Group = "step" | "sink";

/** One part of a pipeline or a task, as the canvas shows it. */
export interface Part {
  key: PartKey;
  group: "source" | Group;
  index: number;
  /** What it is called, also where the document does not say so. */
  id: string;
  /** The type of connector or processor; `ref` for one that is registered, `task` for a task. */
  type: string;
  value: Fields;
  /** Where it stands in the document. */
  path: string;
}

export interface View {
  source: Part | null;
  steps: Part[];
  sinks: Part[];
}

/** In which fields of the spec the parts of a kind are. */
export function fieldsOf(
  place: Place,
  value: Value,
): { step: "processors" | "tasks"; sink: "sinks" | "outputs" } {
  const tasks = place === "pipelines" && Array.isArray(value.spec?.tasks);
  return { step: tasks ? "tasks" : "processors", sink: place === "tasks" ? "outputs" : "sinks" };
}

/** The parts of a document, in order. */
export function viewOf(place: Place, value: Value): View {
  const names = fieldsOf(place, value);
  const spec = value.spec ?? {};
  const steps = listOf(spec[names.step]);
  const sinks = listOf(spec[names.sink]) as Fields[];
  const stepIds = names.step === "tasks" ? steps.map(String) : idsOfSteps(steps as Fields[]);
  const sinkIds = place === "tasks" ? idsOfOutputs(sinks) : sinks.map(idOfSink);
  return {
    source: place === "tasks" ? inputOf(spec) : sourceOf(spec),
    steps: steps.map((step, index) => ({
      key: `step:${index}`,
      group: "step",
      index,
      id: stepIds[index]!,
      type: names.step === "tasks" ? "task" : text((step as Fields).type),
      value: names.step === "tasks" ? { task: step } : (step as Fields),
      path: `spec.${names.step}[${index}]`,
    })),
    sinks: sinks.map((sink, index) => ({
      key: `sink:${index}`,
      group: "sink",
      index,
      id: sinkIds[index]!,
      type: place === "tasks" ? "stream" : typeOf(sink),
      value: sink,
      path: `spec.${names.sink}[${index}]`,
    })),
  };
}

export function partAt(view: View, key: PartKey | null): Part | null {
  if (key === null || key === "settings") return null;
  return [view.source, ...view.steps, ...view.sinks].find((part) => part?.key === key) ?? null;
}

/** The part that a place in the document belongs to. */
export function partOfPath(path: string | null | undefined): PartKey {
  const found = /^spec\.(processors|tasks|sinks|outputs)\[(\d+)\]/.exec(path ?? "");
  if (found) return `${found[1] === "sinks" || found[1] === "outputs" ? "sink" : "step"}:${Number(found[2])}`;
  const ofSource = ["spec.source", "spec.input", "spec.position"].some((above) =>
    isAtOrBelow(path ?? "", above),
  );
  return ofSource ? "source" : "settings";
}

/** Steps without an id are called after their type, numbered from the second on: as the engine does it. */
export function idsOfSteps(steps: Fields[]): string[] {
  const taken = new Set(steps.map((step) => step.id).filter(Boolean));
  return steps.map((step) => {
    if (step.id) return text(step.id);
    let id = text(step.type);
    for (let number = 2; taken.has(id); number++) id = `${text(step.type)}_${number}`;
    taken.add(id);
    return id;
  });
}

export const idOfSink = (sink: Fields) => text(sink.id ?? sink.type ?? sink.ref);

/** Outputs are called after their streams; several to one stream are numbered. */
export function idsOfOutputs(outputs: Fields[]): string[] {
  const seen = new Map<string, number>();
  return outputs.map((output) => {
    const id = derivedId(text(output.stream));
    const times = (seen.get(id) ?? 0) + 1;
    seen.set(id, times);
    return times === 1 ? id : `${id}:${times}`;
  });
}

/** The id of a name in ASCII. The server derives the others, and takes names where it takes ids. */
export const derivedId = (name: string) => name.trim().toLowerCase().replaceAll(/\s/g, "_");

/** A free id that begins with the given word. */
export function freeId(word: string, taken: readonly string[]): string {
  let id = word;
  for (let number = 2; taken.includes(id); number++) id = `${word}_${number}`;
  return id;
}

function sourceOf(spec: Fields): Part | null {
  if (!isFields(spec.source)) return null;
  const value = spec.source;
  return {
    key: "source",
    group: "source",
    index: 0,
    id: "source",
    type: typeOf(value),
    value,
    path: "spec.source",
  };
}

function inputOf(spec: Fields): Part | null {
  if (spec.input === undefined || spec.input === null) return null;
  const { input, position } = spec;
  const value = position === undefined ? { input } : { input, position };
  return { key: "source", group: "source", index: 0, id: text(input), type: "stream", value, path: "spec" };
}

const typeOf = (end: Fields) => ("ref" in end && !("type" in end) ? "ref" : text(end.type));
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const text = (value: unknown) => (value === undefined || value === null ? "" : String(value));
