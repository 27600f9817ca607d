import type { Schemas } from "#/api/client";

export type LogLine = Schemas["LogLine"];
export type Level = LogLine["level"];

/** Lines that a page keeps: older ones are on the server. */
export const MOST_LINES = 2000;

const keyOf = (line: LogLine) => `${line.at} ${line.step} ${line.sink} ${line.message}`;

/**
 * Lines with those that came after them. Who follows anew is told the last lines once more, so lines that are
 * there already are left out.
 */
export function appended(lines: readonly LogLine[], more: readonly LogLine[], again: boolean): LogLine[] {
  const known = again ? new Set(lines.map(keyOf)) : null;
  const fresh = known ? more.filter((line) => !known.has(keyOf(line))) : more;
  return [...lines, ...fresh].slice(-MOST_LINES);
}

/** The lines that have a text somewhere. */
export function matching(lines: readonly LogLine[], text: string): readonly LogLine[] {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return lines;
  return lines.filter((line) =>
    [line.message, line.step, line.sink, ...Object.values(line.fields).map(shown)]
      .join(" ")
      .toLowerCase()
      .includes(wanted),
  );
}

/** A detail of a line as text. */
export const shown = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
