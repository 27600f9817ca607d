import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  type Node,
  Pair,
  Scalar,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import { type Fields, isFields } from "./yaml";

/** Makes a node say `next`, and leaves all that says so already: its comments, its style, its order. */
export function merged(
  document: Document,
  node: unknown,
  next: unknown,
  order: readonly string[] = [],
): Node {
  if (isMap(node) && isFields(next)) return mergeMap(document, node, next, order);
  if (isSeq(node) && Array.isArray(next)) return mergeSeq(document, node, next);
  if (isScalar(node) && isPlain(next)) return mergeScalar(node, next);
  return keepComments(node, created(document, next));
}

/** A new node. Text of several lines stands as a block. */
export function created(document: Document, value: unknown): Node {
  if (typeof value === "string" && value.includes("\n")) {
    const scalar = new Scalar(value);
    scalar.type = "BLOCK_LITERAL";
    return scalar;
  }
  if (isFields(value)) {
    const map = document.createNode({}) as unknown as YAMLMap;
    map.flow = false;
    for (const [key, each] of Object.entries(value)) map.items.push(pair(document, key, each));
    return map;
  }
  if (Array.isArray(value)) {
    const seq = document.createNode([]) as unknown as YAMLSeq;
    // Short lists of words are read best on one line.
    seq.flow = value.every(isPlain) && JSON.stringify(value).length < 70;
    for (const each of value) seq.items.push(created(document, each));
    return seq;
  }
  return document.createNode(value) as Node;
}

/** Sets a field in its usual place among the others. */
export function setKey(
  document: Document,
  map: YAMLMap,
  key: string,
  next: unknown,
  order: readonly string[] = [],
): void {
  const present = pairOf(map, key);
  if (present) {
    present.value = merged(document, present.value, next);
  } else {
    map.items.splice(placeOf(map, key, order), 0, pair(document, key, next));
  }
  if (spansLines(next)) map.flow = false;
}

/** Removes a field. A comment above it was about it. */
export function removeKey(map: YAMLMap, key: string): void {
  map.items = map.items.filter((each) => nameOf(each) !== key);
}

export function pairOf(map: YAMLMap, key: string): Pair<unknown, unknown> | undefined {
  return map.items.find((each) => nameOf(each) === key);
}

function pair(document: Document, key: string, value: unknown): Pair<unknown, unknown> {
  return new Pair(document.createNode(key), created(document, value));
}

const nameOf = (each: Pair<unknown, unknown>) => String(isScalar(each.key) ? each.key.value : each.key);

function placeOf(map: YAMLMap, key: string, order: readonly string[]): number {
  const rank = order.indexOf(key);
  if (rank < 0) return map.items.length;
  const before = map.items.findLastIndex((each) => {
    const other = order.indexOf(nameOf(each));
    return other >= 0 && other < rank;
  });
  return before + 1;
}

function mergeMap(document: Document, map: YAMLMap, next: Fields, order: readonly string[]): Node {
  for (const each of [...map.items]) {
    const name = nameOf(each);
    if (name !== "<<" && next[name] === undefined) removeKey(map, name);
  }
  const inherited = pairOf(map, "<<") ? (map.toJS(document) as Fields) : {};
  for (const [key, value] of Object.entries(next)) {
    if (value === undefined) continue;
    if (!pairOf(map, key) && same(inherited[key], value)) continue;
    setKey(document, map, key, value, order);
  }
  // Of columns to compute, say, the order matters: it is that of the value.
  if (order.length === 0) {
    const rank = new Map(Object.keys(next).map((key, i) => [key, i]));
    map.items.sort((a, b) => (rank.get(nameOf(a)) ?? -1) - (rank.get(nameOf(b)) ?? -1));
  }
  return map;
}

/** Items that stay, wherever they stand now, keep their nodes; the others take over what is left, in order. */
function mergeSeq(document: Document, seq: YAMLSeq, next: unknown[]): Node {
  firstComment(seq);
  const left = seq.items.map((node) => ({ node, value: plain(document, node) }));
  const kept = next.map((value) => {
    const at = left.findIndex((each) => same(each.value, value));
    return at < 0 ? undefined : left.splice(at, 1)[0]!.node;
  });
  seq.items = next.map((value, i) => {
    if (kept[i] !== undefined) return kept[i];
    const old = left.shift();
    return old ? merged(document, old.node, value) : created(document, value);
  });
  if (next.some(spansLines)) seq.flow = false;
  return seq;
}

/** The comment above the first item is about that item, and goes where it goes. */
export function firstComment(seq: YAMLSeq): void {
  const first = seq.items[0] as Node | undefined;
  if (!first || !seq.commentBefore || first.commentBefore) return;
  first.commentBefore = seq.commentBefore;
  seq.commentBefore = undefined;
}

function mergeScalar(node: Scalar, next: unknown): Node {
  if (node.value === next) return node;
  const scalar = new Scalar(next);
  if (typeof next === "string") {
    scalar.type = next.includes("\n")
      ? "BLOCK_LITERAL"
      : typeof node.value === "string"
        ? quoting(node)
        : undefined;
  }
  return keepComments(node, scalar);
}

/** A style that a text of one line can have as well. */
const quoting = (node: Scalar) => (node.type?.startsWith("BLOCK") ? undefined : node.type);

function keepComments(from: unknown, to: Node): Node {
  const node = from as Node | null | undefined;
  if (!node) return to;
  to.comment = node.comment;
  to.commentBefore = node.commentBefore;
  to.spaceBefore = node.spaceBefore;
  return to;
}

const plain = (document: Document, node: unknown) => (node as Node).toJS(document) as unknown;
const isPlain = (value: unknown) => value === null || typeof value !== "object";
const spansLines = (value: unknown): boolean =>
  typeof value === "string"
    ? value.includes("\n")
    : isPlain(value)
      ? false
      : Object.values(value as object).some(spansLines);

/** Whether two values say the same; the order of fields says nothing. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((each, i) => same(each, b[i]));
  if (!isFields(a) || !isFields(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && same(a[key], b[key]));
}
