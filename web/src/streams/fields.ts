import { parse } from "#/api/json";
import type { StreamEvent } from "./api";
import { columnsOf } from "./ddl";

/** Fields that every event has, as a filter names them. */
const META = ["_key", "_time", "_offset", "_headers"];

/** Fields of a JSON object that are offered; an event may have thousands. */
const MOST = 200;

/** The fields of the content of events: columns of a typed stream, else those of JSON in `value`. */
export function contentFields(schema: string | null, events: readonly StreamEvent[]): string[] {
  if (schema !== null) return columnsOf(schema).map(({ name }) => name);
  const found = new Set<string>();
  for (const { value, columns } of events) {
    // A stream without a document of its own may be typed as well.
    if (columns !== undefined) return Object.keys(columns);
    const content = read(value);
    if (typeof content !== "object" || content === null || Array.isArray(content)) continue;
    for (const name of Object.keys(content)) if (found.size < MOST) found.add(`value.${name}`);
  }
  return [...found];
}

/** What a filter can name. */
export const filterFields = (schema: string | null, events: readonly StreamEvent[]): string[] => [
  ...contentFields(schema, events),
  ...(schema === null && events[0]?.columns === undefined ? ["value"] : []),
  ...META,
];

/** The value of a field of the content of an event. */
export function fieldOf({ columns, value }: StreamEvent, field: string): unknown {
  if (columns !== undefined) return columns[field];
  const content = read(value) as Record<string, unknown> | null;
  return content?.[field.slice("value.".length)];
}

function read(value: unknown): unknown {
  if (typeof value !== "string") return null;
  try {
    return parse(value);
  } catch {
    return null;
  }
}

/** Comparisons that a person can choose, and how they are written. */
export const OPERATORS = ["=", "!=", ">", ">=", "<", "<=", "contains", "is null", "is not null"] as const;
export type Operator = (typeof OPERATORS)[number];

/** A condition as the server reads it: `amount > 100`, `customer LIKE '%ada%'`. */
export function conditionOf(field: string, operator: Operator, value: string): string {
  const name = field.split(".").map(quoted).join(".");
  if (operator === "is null" || operator === "is not null") return `${name} ${operator.toUpperCase()}`;
  if (operator === "contains") return `${name} LIKE ${text(`%${value}%`)}`;
  const isPlain = /^[+-]?(\d+(\.\d*)?|\.\d+)$/.test(value) || /^(true|false)$/i.test(value);
  return `${name} ${operator} ${isPlain && !TEXTS.has(field) ? value : text(value)}`;
}

/** Fields that are text whatever they look like. */
const TEXTS = new Set(["_key", "_time", "key", "value"]);
const WORDS = /^(and|or|not|in|is|null|like|ilike|between|true|false)$/i;

const quoted = (name: string) =>
  /^[A-Za-z_]\w*$/.test(name) && !WORDS.test(name) ? name : `\`${name.replaceAll("`", "``")}\``;
const text = (value: string) => `'${value.replaceAll("'", "''")}'`;
