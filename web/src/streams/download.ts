import { api, body } from "#/api/client";
import { csvOf } from "#/components/rowFiles";
import type { StreamEvent, Where } from "./api";
import { fieldOf } from "./fields";

/** Limits of a download: what a browser can hold. */
export const MOST_EVENTS = 100_000;
export const MOST_BYTES = 64 * 1024 * 1024;

const PAGE = 5_000;

export type Format = "jsonl" | "csv";

export interface Collected {
  events: StreamEvent[];
  /** Whether there are more events than the limits allow. */
  more: boolean;
}

/** The events of a range that meet a filter, oldest first, up to the limits. Calls `progress` after each page. */
export async function collect(
  id: string,
  { position, to, where }: Pick<Where, "position" | "to" | "where">,
  progress: (events: number, searched: number) => void,
  signal: AbortSignal,
): Promise<Collected> {
  const events: StreamEvent[] = [];
  let [from, until, searched, size] = [position ?? "earliest", to, 0, 0];
  for (;;) {
    const query = { position: from, to: until, where, limit: Math.min(PAGE, MOST_EVENTS - events.length) };
    const page = await body(
      api.GET("/streams/{name}/events", { params: { path: { name: id }, query }, signal }),
    );
    events.push(...(page.events as StreamEvent[]));
    searched += page.searched;
    size += page.events.length > 0 ? JSON.stringify(page.events).length : 0;
    progress(events.length, searched);
    const isDone = page.next >= page.end || (page.searched === 0 && page.gap === null);
    if (isDone || events.length >= MOST_EVENTS || size >= MOST_BYTES) return { events, more: !isDone };
    // Events that come in meanwhile are not waited for.
    until = `offset:${page.end}`;
    from = `offset:${page.next}`;
  }
}

/** Events as the text of a file: whole events as JSON lines, or a column for each field as CSV. */
export function fileOf(events: readonly StreamEvent[], format: Format, fields: readonly string[]): string {
  if (format === "jsonl") return events.map((event) => `${JSON.stringify(event)}\n`).join("");
  const isWhole = fields.length === 0;
  const columns = ["offset", "time", "key", "headers", ...(isWhole ? ["value"] : fields)];
  const rows = events.map((event) => [
    event.offset,
    event.time,
    event.key,
    event.headers,
    ...(isWhole ? [event.columns ?? event.value] : fields.map((field) => fieldOf(event, field))),
  ]);
  return csvOf(columns, rows);
}
