import { KINDS, type KindName, type Place } from "#/api/kinds";
import { type Fields, read, type Value } from "#/documents/editing/yaml";
import { derivedId } from "./parts";

/** A document to begin with. */
export interface Template {
  title: string;
  about: string;
  /** The types of its parts in order, such as `generate → window → file`. */
  parts: string;
  text: string;
  /** Documents that it refers to. */
  needs: Needed[];
}

/** A document that another one refers to. */
export interface Needed {
  kind: KindName;
  id: string;
  document: Value;
}

// The files in examples/, which the test suite runs, are the templates.
const FILES = import.meta.glob<string>("../../../examples/*.yaml", {
  query: "?raw",
  import: "default",
  eager: true,
});

const HEAD = /^(?:#.*\n)*/;

/**
 * The template in a file: comments at its beginning are the title and the description, the last document is the
 * template, and the others are those it refers to.
 */
export function templateOf(file: string): Template & { kind: KindName } {
  const [head] = HEAD.exec(file)!;
  const [title = "", ...about] = head.split("\n").map((line) => line.replace(/^# ?/, ""));
  const texts = file.slice(head.length).split(/^---\n/m);
  const documents = texts.map((text) => read(text).value ?? {});
  const main = documents.pop()!;
  return {
    kind: main.kind as KindName,
    title,
    about: about.join(" ").trim(),
    parts: partsOf(main).join(" → "),
    text: texts.at(-1)!,
    needs: documents.map((document) => ({
      kind: document.kind as KindName,
      id: derivedId(String(document.metadata?.name)),
      document,
    })),
  };
}

const TEMPLATES = Object.values(FILES)
  .map(templateOf)
  .sort((one, other) => one.title.localeCompare(other.title));

export const templatesOf = (place: Place): Template[] =>
  TEMPLATES.filter(({ kind }) => KINDS[kind].place === place);

/** A document with no parts. */
export const emptyOf = (place: Place): string =>
  place === "tasks"
    ? "kind: Task\nmetadata:\n  name: new task\nspec:\n  processors: []\n  outputs: []\n"
    : "kind: Pipeline\nmetadata:\n  name: new pipeline\nspec:\n  processors: []\n  sinks: []\n";

function partsOf({ spec = {} }: Value): string[] {
  const list = (name: string) => (Array.isArray(spec[name]) ? (spec[name] as Fields[]) : []);
  const type = (part: Fields) => String(part.type ?? part.ref ?? part.stream ?? "");
  const sinks = new Set([...list("sinks"), ...list("outputs")].map(type));
  return [
    spec.source ? type(spec.source as Fields) : String(spec.input ?? ""),
    ...list("processors").map(type),
    ...list("tasks").map(String),
    [...sinks].join(", "),
  ].filter((each) => each !== "");
}
