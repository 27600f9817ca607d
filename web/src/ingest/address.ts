import type { AnyDocument } from "#/api/kinds";
import { columnsOf } from "#/streams/ddl";
import { isRaw, sampleEvent } from "#/testing/suggest";

type Columns = readonly { name: string; type: string }[];

/** Where events are sent to: the path of the source, or else the id of its pipeline; null while there is neither. */
export function addressOf(path: unknown, id: string | null): string | null {
  const own = typeof path === "string" ? path.replace(/^\/+|\/+$/g, "") : "";
  const name = own || id;
  return name ? `/ingest/${name.split("/").map(encodeURIComponent).join("/")}` : null;
}

const RAW = ["value", "key", "headers"].map((name) => ({ name, type: "string" }));

/** Where events are sent to, and what they hold. */
export interface Entrance {
  address: string;
  columns: Columns;
  /** The stream that has the columns, if the source itself declares none. */
  stream: string | null;
}

/** The entrance of the HTTP source of a saved document; null if it has no such source. */
export function entranceOf({ kind, id, spec }: AnyDocument): Entrance | null {
  const source = (kind === "Source" ? spec : kind === "Pipeline" ? (spec.source ?? {}) : {}) as Record<
    string,
    unknown
  >;
  const address = source.type === "http" ? addressOf(source.path, id) : null;
  if (address === null) return null;
  if (typeof source.schema === "string") return { address, columns: columnsOf(source.schema), stream: null };
  return { address, columns: RAW, stream: typeof source.stream === "string" ? source.stream : null };
}

/** The body of a request with sample events. */
export function sampleBody(columns: Columns, howMany = 1): string {
  const one = (row: number) => (isRaw(columns) ? { id: row + 1 } : sampleEvent(columns, row));
  const events = Array.from({ length: howMany }, (_, row) => one(row));
  if (howMany === 1) return JSON.stringify(events[0]);
  return `[\n${events.map((event) => `  ${JSON.stringify(event)}`).join(",\n")}\n]`;
}

/** A command line that sends an event. */
export function curlOf(url: string, body: string, hasLogin: boolean): string {
  const token = hasLogin ? ` -H "Authorization: Bearer $TOKEN"` : "";
  return `curl ${url}${token} -H 'Content-Type: application/json' -d '${body.replaceAll("'", "'\\''")}'`;
}
