import { columnsOfDdl, sampleEvent } from "./suggest";
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
      faults[id] = `This is not JSON yet: ${(error as Error).message}`;
    }
  }
  return { given, faults };
}

/** Answers to begin with: as the step declares them, with values that mean nothing. */
export function answersBegin({ fields }: Asking): string {
  const ddl = [fields.schema, fields.columns].find((each) => typeof each === "string") as string | undefined;
  const row: Record<string, unknown> = ddl ? sampleEvent(columnsOfDdl(ddl)) : {};
  // A table is looked up by its own columns, which are named after those of the event.
  if (ddl && typeof fields.on === "object" && fields.on !== null) {
    for (const name of Object.values(fields.on)) row[String(name)] ??= `${name} 1`;
  }
  return JSON.stringify([row], null, 2);
}
