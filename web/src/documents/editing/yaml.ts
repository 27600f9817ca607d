import {
  Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type ParsedNode,
  parseDocument,
  visit,
  type YAMLMap,
} from "yaml";
import { type Path, parsePath } from "./paths";

/** A document as the builder knows it: it has a spec, whose lists are lists of mappings. */
export interface Value {
  kind?: string;
  apiVersion?: string;
  metadata?: Fields;
  spec?: Fields;
  status?: string;
}

export type Fields = Record<string, unknown>;

/** Why a text cannot be shown on the canvas. */
export interface Fault {
  message: string;
  /** From 1. */
  line: number;
  column: number;
}

export type Reading = { value: Value; fault: null } | { value: null; fault: Fault };

// Quotes what YAML 1.1, which the command line reads, takes for true, false or a number.
const READ = { compat: "yaml-1.1", merge: true, prettyErrors: false, intAsBigInt: true } as const;
const WRITE = { lineWidth: 0, flowCollectionPadding: false } as const;

/** What a text says, or why it says nothing that can be shown. */
export function read(text: string): Reading {
  const lines = new LineCounter();
  const document = parsed(text, lines);
  const at = (offset: number, message: string): Reading => {
    const { line, col } = lines.linePos(offset);
    return { value: null, fault: { message, line: Math.max(1, line), column: Math.max(1, col) } };
  };
  const [error] = document.errors;
  if (error) return at(error.pos[0], sentence(error.message));
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 1000 });
  } catch (thrown) {
    return at(0, thrown instanceof Error ? thrown.message : String(thrown));
  }
  const wrong = misshapen(value);
  if (wrong) return at(rangeOf(document, wrong.path)[0], wrong.message);
  return { value: value as Value, fault: null };
}

/** The tree of a text. Integers are numbers, unless that would cost digits. */
function parsed(text: string, lineCounter?: LineCounter) {
  const document = parseDocument(text, { ...READ, lineCounter });
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === "bigint" && Number.isSafeInteger(Number(node.value)))
        node.value = Number(node.value);
    },
  });
  return document;
}

/** The text of a document that is given as an object. */
export function textOf(value: object): string {
  const document = new Document(value, READ);
  visit(document, {
    // Scripts and queries of several lines are read best as they are written.
    Scalar: (_, node) => {
      if (typeof node.value === "string" && node.value.includes("\n")) node.type = "BLOCK_LITERAL";
    },
  });
  return document.toString(WRITE);
}

/** Changes a text through its tree, so that comments and the order of fields stay. */
export function edited(text: string, change: (document: Document) => void): string {
  const document = parsed(text) as unknown as Document;
  writeOutAliases(document);
  change(document);
  return document.toString(WRITE);
}

/** Where a place is in the text, as offsets: that of the nearest one above it, if it is not there. */
export function locate(
  text: string,
  path: string,
): { from: number; to: number; line: number; column: number } {
  const lines = new LineCounter();
  const document = parsed(text, lines);
  const [from, to] = rangeOf(document, parsePath(path));
  const { line, col } = lines.linePos(from);
  return { from, to, line: Math.max(1, line), column: Math.max(1, col) };
}

function rangeOf(document: Document<ParsedNode> | Document, path: Path): [number, number] {
  let node: unknown = document.contents;
  let range: [number, number] = [0, 0];
  for (let i = 0; i < path.length; i++) {
    if (isAlias(node)) node = node.resolve(document as Document);
    const part = path[i]!;
    if (isSeq(node) && typeof part === "number") {
      node = node.items[part];
    } else if (isMap(node)) {
      const found = pairAt(node, path, i);
      if (!found) break;
      if (isNode(found.pair.key) && found.pair.key.range)
        range = [found.pair.key.range[0], found.pair.key.range[1]];
      node = found.pair.value;
      i = found.last;
      // A field is marked at its name; only what has none, an item of a list, is marked as a whole.
      continue;
    } else break;
    if (isNode(node) && node.range) range = [node.range[0], node.range[1]];
  }
  return range;
}

/** The field at a place; names may have dots in them, as those of nested fields have. */
function pairAt(map: YAMLMap, path: Path, first: number) {
  let name = "";
  for (let last = first; last < path.length && typeof path[last] === "string"; last++) {
    name = name ? `${name}.${path[last]}` : String(path[last]);
    const pair = map.items.find((each) => (isScalar(each.key) ? String(each.key.value) : each.key) === name);
    if (pair) return { pair, last };
  }
  return null;
}

function misshapen(value: unknown): { path: Path; message: string } | null {
  if (!isFields(value))
    return { path: [], message: "A document must be a mapping with 'kind', 'metadata' and 'spec'" };
  for (const name of ["metadata", "spec"]) {
    const part = value[name];
    if (part !== undefined && part !== null && !isFields(part)) {
      return { path: [name], message: `'${name}' must be a mapping` };
    }
  }
  const spec = (value.spec ?? {}) as Fields;
  if (spec.source !== undefined && spec.source !== null && !isFields(spec.source)) {
    return { path: ["spec", "source"], message: "A source must be a mapping with a 'type' or a 'ref'" };
  }
  for (const name of ["processors", "sinks", "outputs", "tasks", "tests"]) {
    const list = spec[name];
    if (list === undefined || list === null) continue;
    if (!Array.isArray(list)) return { path: ["spec", name], message: `'${name}' must be a list` };
    const wrong = name === "tasks" ? -1 : list.findIndex((item) => !isFields(item));
    if (wrong >= 0)
      return { path: ["spec", name, wrong], message: `Each item of '${name}' must be a mapping` };
  }
  return null;
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An alias in the wrong place would make the text unreadable once parts are moved. */
function writeOutAliases(document: Document): void {
  const anchored: Node[] = [];
  visit(document, {
    Alias: (_, alias) => {
      const node = alias.resolve(document);
      if (!node) return undefined;
      anchored.push(node);
      const copy = node.clone() as Node;
      if (isCollection(copy) || isScalar(copy)) copy.anchor = undefined;
      return copy;
    },
  });
  for (const node of anchored) if (isCollection(node) || isScalar(node)) node.anchor = undefined;
}

const sentence = (message: string) => message.replace(/ at line \d+, column \d+:?[\s\S]*$/, "");
