import type { Span } from "./chart";

/** What charts show: the last minutes, or a time range that was chosen. */
export type TimeRange = { minutes: number } | Span;

export const isSpan = (range: TimeRange): range is Span => "from" in range;

/** How the charts of a page show a range. */
export const axisOf = (range: TimeRange): { minutes?: number; span?: Span } =>
  isSpan(range) ? { span: range } : range;

const pad = (part: number) => String(part).padStart(2, "0");

/** A moment as an input of type `datetime-local` takes it: in the reader's time zone, to the second. */
export function localText(at: number): string {
  const date = new Date(at);
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day}T${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

/** The range between two such texts; a sentence if they are none. */
export function spanOf(from: string, to: string): Span | string {
  const span = { from: new Date(from).getTime(), to: new Date(to).getTime() };
  if (Number.isNaN(span.from) || Number.isNaN(span.to)) return "Enter a start and an end.";
  return span.to > span.from ? span : "The end must be after the start.";
}
