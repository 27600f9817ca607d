import type { Gap, StreamEvent } from "./api";

/** A line of a tail: an event, or offsets whose events are gone. */
export type Line =
  | { at: number; event: StreamEvent; gap?: undefined }
  | { at: number; gap: Gap; event?: undefined };

/** As many lines as a page keeps: older ones can be browsed. */
export const MOST = 1000;

/** The newest lines, newest first, after some more have come. */
export function kept(lines: readonly Line[], more: readonly Line[]): Line[] {
  if (more.length === 0) return lines as Line[];
  return [...more.slice(-MOST).reverse(), ...lines].slice(0, MOST);
}

/** Whether the JSON of a line has a text in it, as the server filters; gaps are always shown. */
export function shows(line: Line, filter: string): boolean {
  return line.event === undefined || filter === "" || JSON.stringify(line.event).includes(filter);
}
