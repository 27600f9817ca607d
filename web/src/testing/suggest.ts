import type { Column } from "#/editors/language";
import { split } from "#/streams/ddl";
import type { Event } from "./trace";

/** A type as Spark writes it: `struct<a:int,b:array<string>>`. */
interface Type {
  name: string;
  /** What is inside of it: the element of an array, key and value of a map, the fields of a struct. */
  inner: { name: string; type: Type }[];
}

const HOW_MANY = 3;

/** Some events that fit the columns of a source. Their values mean nothing: they are there to be edited. */
export function suggested(columns: readonly Column[], howMany = HOW_MANY): Event[] {
  return Array.from({ length: howMany }, (_, row) => sampleEvent(columns, row));
}

/** One event that fits. */
export function sampleEvent(columns: readonly Column[], row = 0): Event {
  if (isRaw(columns)) return { value: JSON.stringify({ id: row + 1 }) };
  const own = columns.filter((column) => !BESIDE.has(column.name));
  return Object.fromEntries(own.map(({ name, type }) => [name, sampleValue(parseType(type), name, row)]));
}

/** What a source with `metadata` tells of an event beside its columns; samples say that in `$meta`. */
const BESIDE = new Set(["_offset", "_time", "_key", "_headers"]);

/** Whether events of the source are texts, with key and headers beside them. */
export function isRaw(columns: readonly Column[]): boolean {
  const names = columns.map((column) => column.name);
  return names.slice(0, 3).join() === "value,key,headers" || names.join() === "value";
}

export function parseType(text: string): Type {
  const found = /^\s*(\w+)\s*(?:<(.*)>)?/s.exec(text.trim());
  const name = (found?.[1] ?? "string").toLowerCase();
  const inner = split(found?.[2] ?? "").map((part, place) => {
    const field = name === "struct" ? /^\s*(`[^`]+`|[^:\s]+)\s*[:\s]\s*(.*)$/s.exec(part) : null;
    return {
      name: field ? field[1]!.replaceAll("`", "") : String(place),
      type: parseType(field?.[2] ?? part),
    };
  });
  return { name, inner };
}

const HOUR = Date.UTC(2026, 0, 1, 12);
const moment = (row: number) => new Date(HOUR + row * 60_000).toISOString().replace(".000", "");

function sampleValue({ name, inner }: Type, field: string, row: number): unknown {
  switch (name) {
    case "tinyint":
    case "smallint":
    case "int":
    case "integer":
    case "bigint":
    case "long":
      return row + 1;
    case "float":
    case "double":
    case "real":
      return (row + 1) * 10.5;
    case "decimal":
      return (row + 1) * 10;
    case "boolean":
      return row % 2 === 0;
    case "date":
      return moment(row).slice(0, 10);
    case "timestamp":
      return moment(row);
    case "timestamp_ntz":
      return moment(row).slice(0, -1);
    case "binary":
      return btoa(`${field} ${row + 1}`);
    case "array":
      return inner[0] ? [sampleValue(inner[0].type, field, row)] : [];
    case "map":
      return inner[1] ? { key: sampleValue(inner[1].type, field, row) } : {};
    case "struct":
      return Object.fromEntries(inner.map((each) => [each.name, sampleValue(each.type, each.name, row)]));
    default:
      return `${field} ${row + 1}`;
  }
}
