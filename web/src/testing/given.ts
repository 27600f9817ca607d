import { columnsOf } from "#/streams/ddl";
import { sampleEvent } from "./suggest";
import type { Asking } from "./testable";

export interface Answers {
  given: Record<string, unknown>;
  /** Step → why its text cannot be sent. */
  faults: Record<string, string>;
}

/** What was written for the steps that are there now; a step without a text is given nothing. */
export function answersOf(texts: Record<string, string>, steps: readonly Asking[]): Answers {
  const given: Record<string, unknown> = {};
  const faults: Record<string, string> = {};
  for (const { id } of steps) {
    const text = texts[id]?.trim();
    if (!text) continue;
    try {
      given[id] = JSON.parse(text) as unknown;
    } catch (error) {
      faults[id] = `Not valid JSON: ${(error as Error).message}`;
    }
  }
  return { given, faults };
}

/** Answers to begin with: as the step declares them, with values that mean nothing. */
export function answersBegin({ fields }: Asking, count: number): string {
  const ddl = [fields.schema, fields.columns].find((each) => typeof each === "string") as string | undefined;
  const columns = ddl ? columnsOf(ddl) : [];
  // A table is looked up by its own columns, which are named after those of the event.
  const keys =
    typeof fields.on === "object" && fields.on !== null ? Object.values(fields.on).map(String) : [];
  const rows = Array.from({ length: Math.min(Math.max(count, 1), MOST) }, (_, row) => ({
    ...Object.fromEntries(keys.map((name) => [name, `${name} ${row + 1}`])),
    ...sampleEvent(columns, row),
  }));
  return `[\n${rows.map((row) => `  ${JSON.stringify(row)}`).join(",\n")}\n]`;
}

/** More than so many are no suggestion any more. */
const MOST = 20;
