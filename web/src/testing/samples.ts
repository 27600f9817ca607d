import { isMap, isNode, isSeq, LineCounter, parseDocument } from "yaml";
import type { Problem, Schemas } from "#/api/client";
import { parse } from "#/api/json";
import type { Mark } from "#/editors/language";
import { problemsIn } from "#/editors/places";
import type { Event } from "./trace";

/** How sample events are written. */
export type Format = "json" | "ndjson" | "csv" | "text";

export const FORMATS: Record<Format, { label: string; type: string; endings: readonly string[] }> = {
  json: { label: "JSON", type: "application/json", endings: ["json"] },
  ndjson: { label: "JSON lines", type: "application/x-ndjson", endings: ["ndjson", "jsonl"] },
  csv: { label: "CSV", type: "text/csv", endings: ["csv"] },
  text: { label: "Text", type: "text/plain", endings: ["txt", "log"] },
};

/** What a test run is asked with. */
export type Sent = { events: unknown[] } | { text: string; content_type: string };

export type Reading = { sent: Sent; count: number | null; problem: null } | { sent: null; problem: string };

/** The format that a text looks like. */
export function detect(text: string): Format {
  const trimmed = text.trim();
  if (/^[[{]/.test(trimmed)) {
    const [first, ...others] = trimmed.split("\n");
    return others.length > 0 && parsed(first!) !== undefined ? "ndjson" : "json";
  }
  const [head = "", row] = trimmed.split("\n");
  return row !== undefined && head.includes(",") && /^[\w$" .,-]+$/.test(head.trim()) ? "csv" : "text";
}

/** The format of a file by the end of its name. */
export function formatOfFile(name: string): Format | null {
  const ending = name.toLowerCase().split(".").at(-1)!;
  const found = Object.entries(FORMATS).find(([, { endings }]) => endings.includes(ending));
  return (found?.[0] as Format | undefined) ?? null;
}

/**
 * Reads samples as far as it can be done here: JSON becomes events, CSV and text are for the server, which knows
 * the columns. What is pushed to a raw source has no columns at all, so JSON is its value, as it would be sent.
 */
export function readSamples(text: string, format: Format, isRaw: boolean): Reading {
  const { type } = FORMATS[format];
  if (text.trim() === "") return { sent: null, problem: "No sample events yet." };
  if (format === "csv" || format === "text") {
    return { sent: { text, content_type: type }, count: null, problem: null };
  }
  const events = format === "json" ? wholeOf(text) : linesOf(text);
  if (typeof events === "string") return { sent: null, problem: events };
  if (isRaw && events.every((event) => typeof event === "object" && event !== null && !("value" in event))) {
    return { sent: { text, content_type: type }, count: events.length, problem: null };
  }
  return { sent: { events }, count: events.length, problem: null };
}

function wholeOf(text: string): unknown[] | string {
  try {
    const found = parse(text);
    return Array.isArray(found) ? found : [found];
  } catch (error) {
    return `Not valid JSON: ${(error as Error).message}`;
  }
}

function linesOf(text: string): unknown[] | string {
  const events: unknown[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const event = parsed(line);
    if (event === undefined) return `Line ${index + 1} is not valid JSON. Each line must be one event.`;
    events.push(event);
  }
  return events;
}

function parsed(text: string): unknown {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

/** Events as a text that can be edited: one to a line, the whole as JSON. */
export function textOfEvents(events: readonly unknown[]): string {
  return `[\n${events.map((event) => `  ${JSON.stringify(event)}`).join(",\n")}\n]`;
}

/** A text with one more event at its end; null if it has a form that no event can be added to. */
export function withEvent(text: string, format: Format, event: unknown): string | null {
  if (text.trim() === "") return textOfEvents([event]);
  if (format === "ndjson") return `${text.trimEnd()}\n${JSON.stringify(event)}\n`;
  if (format !== "json") return null;
  const events = wholeOf(text);
  return typeof events === "string" ? null : textOfEvents([...events, event]);
}

type Stored = Schemas["RawEvent"] | Schemas["TypedEvent"];

/** An event of a stream as a sample: what is known of it beside its columns is in `$meta`. */
export function sampleOf(event: Stored): Event {
  const { time, key, headers } = event;
  const known = Object.entries({ time, key: plain(key), headers });
  const meta = Object.fromEntries(known.filter(([, each]) => each !== null && !isEmpty(each)));
  return { ...("columns" in event ? event.columns : { value: plain(event.value) }), $meta: meta };
}

/** Bytes that are no text cannot be written down as they are. */
function plain(value: unknown): unknown {
  const base64 = (value as { base64?: unknown } | null | undefined)?.base64;
  if (typeof base64 !== "string" || Object.keys(value as object).length !== 1) return value;
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)));
}

const isEmpty = (value: unknown) => typeof value === "object" && Object.keys(value as object).length === 0;

/** Where the problems of samples are in their text: `events[2]` is the third event, other paths are elsewhere. */
export function marksIn(text: string, format: Format, problems: readonly Problem[]): Mark[] {
  const own = problems.filter(({ path }) => /^(events|text|input)\b/.test(path ?? ""));
  if (own.length === 0) return [];
  const lines = format === "json" ? jsonLines(text) : format === "ndjson" ? ndjsonLines(text) : [];
  return own.map((problem) => {
    const number = /^\w+\[(\d+)\]/.exec(problem.path ?? "")?.[1];
    const line = number === undefined ? undefined : lines[Number(number)];
    return line === undefined ? problemsIn([problem])[0]! : { message: problem.message, line };
  });
}

const ndjsonLines = (text: string) =>
  text.split("\n").flatMap((line, index) => (line.trim() === "" ? [] : [index + 1]));

/** The lines on which the events of a JSON text begin: JSON is YAML, whose parser tells where things are. */
function jsonLines(text: string): number[] {
  const lines = new LineCounter();
  const { contents } = parseDocument(text, { lineCounter: lines });
  const items = isSeq(contents) ? contents.items : isMap(contents) ? [contents] : [];
  return items.map((item) => lines.linePos(isNode(item) ? (item.range?.[0] ?? 0) : 0).line);
}
