import type { AnyDocument } from "#/api/kinds";
import type { Column } from "#/editors/language";
import { columnsOf } from "#/streams/ddl";

const META: Column[] = [
  { name: "_offset", type: "bigint" },
  { name: "_time", type: "timestamp" },
];
const RAW: Column[] = [
  { name: "value", type: "string" },
  { name: "key", type: "string" },
  { name: "headers", type: "map<string,string>" },
];
const TYPED: Column[] = [
  { name: "_key", type: "string" },
  { name: "_headers", type: "map<string,string>" },
];

/** The columns of each stream as a query sees them, by the id of the stream. */
export function tablesOf(streams: readonly AnyDocument[]): Record<string, Column[]> {
  return Object.fromEntries(
    streams.map(({ id, spec }) => {
      const schema: string | null | undefined = spec?.schema;
      const own = schema ? [...columnsOf(schema), ...TYPED] : RAW;
      return [id, [...own, ...META].map(({ name, type }) => ({ name, type }))];
    }),
  );
}

/** An id as it is written in SQL. */
export const quoted = (id: string): string => (/^[a-z_]\w*$/i.test(id) ? id : `\`${id}\``);

/** A query to begin with: what a stream got last. */
export const lastEvents = (id: string): string =>
  `SELECT * FROM ${quoted(id)} ORDER BY _offset DESC LIMIT 100`;
