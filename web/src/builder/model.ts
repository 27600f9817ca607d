import { type Document, isMap, isSeq, type Node, type YAMLMap, type YAMLSeq } from "yaml";
import type { Place } from "#/api/kinds";
import { created, firstComment, merged, pairOf, removeKey, setKey } from "#/documents/editing/merge";
import { edited, type Fields, read, type Value } from "#/documents/editing/yaml";
import { fieldsOf, freeId, type Group, idOfSink, type Part, type PartKey, viewOf } from "./parts";
import { followed, type Renamed } from "./references";

/** What the canvas and the forms do to a document: text in, text out, comments and order kept. */

const DOCUMENT = ["apiVersion", "kind", "metadata", "spec", "status"];
const SPEC = [
  "source",
  "input",
  "position",
  "buffer",
  "processors",
  "tasks",
  "sinks",
  "outputs",
  "batch",
  "latency",
  "commit_policy",
  "restart",
  "dead_letters",
  "tests",
];
const PART = ["id", "type", "ref", "stream"];

export interface Edit {
  text: string;
  /** What is to be selected afterwards. */
  select?: PartKey | null;
}

/** Adds a step before the one at `index`, or at the end. */
export function addStep(text: string, place: Place, index: number, step: Fields): Edit {
  const { value } = good(text);
  const { step: field } = fieldsOf(place, value);
  const ids = viewOf(place, value).steps.map((part) => part.id);
  const named = { id: freeId(String(step.id ?? step.type), ids), ...without(step, "id") };
  return { text: insert(text, field, index, field === "tasks" ? step.task : named), select: `step:${index}` };
}

/** Adds a registered task as a step of a pipeline that has no processors of its own. */
export function addTask(text: string, index: number, id: string): Edit {
  const next = edited(text, (document) => {
    const spec = mapAt(document, "spec");
    if (isEmpty(pairOf(spec, "processors")?.value)) removeKey(spec, "processors");
    insertInto(document, listAt(document, spec, "tasks"), index, id);
  });
  return { text: next, select: `step:${index}` };
}

/** Adds a sink of a pipeline, or an output of a task, at the end. */
export function addSink(text: string, place: Place, sink: Fields): Edit {
  const { value } = good(text);
  const sinks = viewOf(place, value).sinks;
  const taken = sinks.map((part) => part.id);
  const named = place === "tasks" ? sink : { id: freeId(idOfSink(sink), taken), ...without(sink, "id") };
  const field = fieldsOf(place, value).sink;
  return { text: insert(text, field, sinks.length, named), select: `sink:${sinks.length}` };
}

/** Removes a step or a sink, with the comment above it. */
export function remove(text: string, place: Place, group: Group, index: number): Edit {
  const field = fieldsOf(place, good(text).value)[group];
  const next = edited(text, (document) => {
    const list = listAt(document, mapAt(document, "spec"), field);
    firstComment(list);
    list.items.splice(index, 1);
    // `tasks: []` would still stand in the way of processors.
    if (field === "tasks" && list.items.length === 0) removeKey(mapAt(document, "spec"), "tasks");
  });
  return { text: next, select: null };
}

/** Moves a step or a sink to another place in its list. */
export function move(text: string, place: Place, group: Group, from: number, to: number): Edit {
  if (from === to) return { text, select: `${group}:${from}` };
  const field = fieldsOf(place, good(text).value)[group];
  const next = edited(text, (document) => {
    const list = listAt(document, mapAt(document, "spec"), field);
    firstComment(list);
    const [item] = list.items.splice(from, 1);
    list.items.splice(to, 0, item);
  });
  return { text: next, select: `${group}:${to}` };
}

/** Puts a copy of a step or a sink after it, under an id of its own. */
export function duplicate(text: string, place: Place, group: Group, index: number): Edit {
  const { value } = good(text);
  const field = fieldsOf(place, value)[group];
  const view = viewOf(place, value);
  const parts = group === "step" ? view.steps : view.sinks;
  const id = freeId(
    parts[index]!.id,
    parts.map((part) => part.id),
  );
  const next = edited(text, (document) => {
    const list = listAt(document, mapAt(document, "spec"), field);
    firstComment(list);
    const copy = (list.items[index] as Node).clone() as Node;
    if (isMap(copy) && field !== "outputs") setKey(document, copy, "id", id, PART);
    list.items.splice(index + 1, 0, copy);
  });
  return { text: next, select: `${group}:${index + 1}` };
}

/** Sets all fields of a part. Where that changes what it is called, what names it follows. */
export function setPart(text: string, place: Place, part: Part, next: Fields): Edit {
  const { value } = good(text);
  const changed = edited(text, (document) => {
    const spec = mapAt(document, "spec");
    if (part.group === "source") {
      if (place === "tasks") setFields(document, spec, next, ["input", "position"]);
      else setKey(document, spec, "source", next, SPEC);
      return;
    }
    const list = listAt(document, spec, fieldsOf(place, value)[part.group]);
    const item = part.type === "task" ? next.task : next;
    list.items[part.index] = merged(document, list.items[part.index], item, PART);
    if (Object.values(next).some((each) => typeof each === "string" && each.includes("\n")))
      list.flow = false;
  });
  return { text: follow(changed, place, value), select: part.key };
}

/** Sets the source of a pipeline, or the input of a task. */
export function setSource(text: string, place: Place, source: Fields): Edit {
  const next = edited(text, (document) => {
    const spec = mapAt(document, "spec");
    if (place === "tasks") setFields(document, spec, source, ["input", "position"]);
    else setKey(document, spec, "source", source, SPEC);
  });
  return { text: next, select: "source" };
}

/** Sets fields of the spec that are no parts: batch, policy, restart, dead letters, buffer. */
export function setSpec(text: string, next: Fields, names: readonly string[]): Edit {
  return { text: edited(text, (document) => setFields(document, mapAt(document, "spec"), next, names)) };
}

/** Sets name, description and labels. */
export function setMetadata(text: string, next: Fields): Edit {
  return {
    text: edited(text, (document) => setKey(document, rootOf(document), "metadata", next, DOCUMENT)),
  };
}

/** What it should do once it is saved; null: it goes on as it is. */
export function setStatus(text: string, status: string | null): Edit {
  const next = edited(text, (document) => {
    if (status === null) removeKey(rootOf(document), "status");
    else setKey(document, rootOf(document), "status", status, DOCUMENT);
  });
  return { text: next };
}

function good(text: string): { value: Value } {
  const { value, fault } = read(text);
  if (value === null) throw new Error(fault.message);
  return { value };
}

function insert(text: string, field: string, index: number, item: unknown): string {
  return edited(text, (document) => {
    insertInto(document, listAt(document, mapAt(document, "spec"), field), index, item);
  });
}

function insertInto(document: Document, list: YAMLSeq, index: number, item: unknown): void {
  firstComment(list);
  list.items.splice(index, 0, created(document, item));
  list.flow = typeof item === "string" && list.flow;
}

function setFields(document: Document, map: YAMLMap, next: Fields, names: readonly string[]): void {
  for (const name of names) {
    if (next[name] === undefined) removeKey(map, name);
    else setKey(document, map, name, next[name], SPEC);
  }
}

function rootOf(document: Document): YAMLMap {
  if (!isMap(document.contents)) document.contents = document.createNode({}) as never;
  return document.contents as unknown as YAMLMap;
}

function mapAt(document: Document, name: string): YAMLMap {
  const root = rootOf(document);
  if (!isMap(pairOf(root, name)?.value)) setKey(document, root, name, {}, DOCUMENT);
  const map = pairOf(root, name)!.value as YAMLMap;
  map.flow = false;
  return map;
}

function listAt(document: Document, spec: YAMLMap, name: string): YAMLSeq {
  if (!isSeq(pairOf(spec, name)?.value)) {
    setKey(document, spec, name, [], SPEC);
    (pairOf(spec, name)!.value as YAMLSeq).flow = false;
  }
  return pairOf(spec, name)!.value as YAMLSeq;
}

const isEmpty = (node: unknown) => !isSeq(node) || node.items.length === 0;

const without = (fields: Fields, name: string): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([key]) => key !== name));

/** Makes what names a part follow, if the part is called otherwise now. */
function follow(text: string, place: Place, before: Value): string {
  const after = good(text).value;
  const renamed = renamedIn(place, before, after);
  return renamed.length === 0
    ? text
    : edited(text, (document) => {
        const spec = mapAt(document, "spec");
        const next = followed(after.spec ?? {}, renamed);
        for (const name of ["processors", "tests"]) {
          if (next[name] !== undefined) setKey(document, spec, name, next[name], SPEC);
        }
      });
}

function renamedIn(place: Place, before: Value, after: Value): Renamed[] {
  const [old, now] = [viewOf(place, before), viewOf(place, after)];
  const pairs = (group: Group, a: Part[], b: Part[]): Renamed[] =>
    a.length !== b.length
      ? []
      : a
          .map((part, i) => ({ group, from: part.id, to: b[i]!.id }))
          // One that takes the name of another, or has none, is followed by nothing.
          .filter(({ from, to }) => from !== to && from && to && !a.some((part) => part.id === to));
  return [...pairs("step", old.steps, now.steps), ...pairs("sink", old.sinks, now.sinks)];
}
