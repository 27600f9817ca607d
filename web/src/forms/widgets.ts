import { KINDS, type Kind, type KindName } from "#/api/kinds";
import type { Language } from "#/editors/language";
import type { JsonSchema } from "./schema";

/** What the text of a field is, as far as its name and its description tell. */

const COLUMN_FIELDS = new Set([
  "field",
  "fields",
  "keys",
  "by",
  "time",
  "partition_by",
  "payload",
  "aggregate_type",
  "aggregate_id",
  "event_type",
  "event_id",
]);

/** Fields that few people set; they are folded away. */
const RARE = new Set([
  "atomic",
  "backoff_ms",
  "batch",
  "burst",
  "cache",
  "concurrency",
  "deadline_ms",
  "delimiter",
  "file",
  "framing",
  "gap",
  "headers",
  "key_separator",
  "limits",
  "malformed",
  "max_body_bytes",
  "max_file_bytes",
  "max_rows",
  "max_tx_bytes",
  "max_tx_ms",
  "message",
  "metadata",
  "modules",
  "null_text",
  "offset",
  "on_full",
  "options",
  "pair_separator",
  "patterns",
  "poll_ms",
  "registry",
  "respect_source_tx",
  "restart",
  "retries",
  "retry",
  "seed",
  "segment_bytes",
  "segment_ms",
  "storage",
  "stream_time",
  "tag",
  "timeout_ms",
  "until",
]);

/** The language of a field that holds code. */
export function languageOf(name: string, schema: JsonSchema, parent?: string): Language | undefined {
  const text = schema.description ?? "";
  if (name === "query" || /(in|as) Spark SQL|Spark SQL expression|SQL condition/.test(text)) return "sql";
  if (name === "inline") return parent === "python" ? "text" : "javascript";
  return undefined;
}

/** Whether the values of a map are expressions. */
export const hasExpressions = (schema: JsonSchema): boolean =>
  /→[^;]*Spark SQL/.test(schema.description ?? "");

/** Whether the names in a map are columns of the events that come in. */
export const hasColumnKeys = (schema: JsonSchema): boolean =>
  /Column of the event →|column → column|Old name →/.test(schema.description ?? "");

/** Whether a text is a list of columns with their types. */
export const isColumns = (schema: JsonSchema): boolean => /Spark DDL/.test(schema.description ?? "");

/** The kind of document that a field names by its id. */
export function referenceOf(schema: JsonSchema): Kind | undefined {
  const found = /\bIds? of (?:an?|the|the other)? ?(Stream|Source|Sink|Task)s?\b/i.exec(
    schema.description ?? "",
  );
  const name = found?.[1];
  return name && /^[A-Z]/.test(name) ? KINDS[name as KindName] : undefined;
}

/** Whether a field names sinks of the same document. */
export const namesSinks = (schema: JsonSchema): boolean => /^Ids of the sinks/.test(schema.description ?? "");

export const namesColumns = (name: string): boolean => COLUMN_FIELDS.has(name);

/** Where reading begins: one of two words, or a prefix with a value. */
export const isPosition = (schema: JsonSchema): boolean => schema.pattern?.startsWith("^(earliest|") ?? false;

/** Whether a text is a duration, such as 90s. */
export const isDuration = (schema: JsonSchema): boolean => schema.pattern === "^[0-9]+(ms|s|m|h|d)$";

/** Whether a field is folded away at first. */
export function isRare(name: string, required: boolean, siblings: string[]): boolean {
  if (required) return false;
  if (name === "file" && siblings.includes("database")) return false;
  return RARE.has(name);
}
