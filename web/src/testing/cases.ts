import type { Schemas } from "#/api/client";
import { plural } from "#/components/format";
import { type Event, META } from "./trace";

/** What came of a test run; the server leaves out nothing that has a default. */
export type Tested = Required<Schemas["Tested"]>;
export type CaseResult = Required<Schemas["CaseResult"]>;

/** A test of a document, as it is written in it. */
export interface Case {
  name: string;
  input: unknown[] | string;
  given?: Record<string, unknown>;
  expect: Record<string, unknown>;
}

/** How the events that come out are compared with those that are expected. */
export type Way = "exactly" | "fields" | "count";

export interface Wish {
  name: string;
  way: Way;
  /** With `fields`: those that are compared. */
  fields: readonly string[];
  /** Also what each sink gets, if that differs from what leaves the last step. */
  sinks: boolean;
  /** Also how many events each step drops. */
  dropped: boolean;
}

/** The tests of a document; things in their place that are none are left out. */
export function casesOf(document: object): Case[] {
  const tests = (document as { spec?: { tests?: unknown } }).spec?.tests;
  if (!Array.isArray(tests)) return [];
  return tests.filter((each): each is Case => typeof each?.name === "string");
}

/** A test that expects what has just come out. */
export function caseOf(
  wish: Wish,
  input: readonly unknown[],
  given: Record<string, unknown>,
  tested: Tested,
): Case {
  const expect: Record<string, unknown> = { output: expected(finalOf(tested), wish) };
  if (wish.sinks) {
    expect.sinks = Object.fromEntries(
      Object.entries(tested.output).map(([id, events]) => [id, expected(events, wish)]),
    );
  }
  const dropping = tested.steps.filter((step) => step.dropped > 0);
  if (wish.dropped && dropping.length > 0) {
    expect.steps = Object.fromEntries(dropping.map((step) => [step.id, { dropped: step.dropped }]));
  }
  const errors = tested.steps.flatMap((step) => step.errors.map(({ code }) => ({ step: step.id, code })));
  if (errors.length > 0) expect.errors = errors;
  return {
    name: wish.name,
    input: [...input],
    ...(Object.keys(given).length > 0 ? { given } : {}),
    expect,
  };
}

function expected(events: readonly Event[], { way, fields }: Wish): unknown {
  if (way === "count") return { count: events.length };
  if (way === "exactly") return events.length === 0 ? { count: 0 } : events.map(columnsOf);
  const contains = events.map((event) =>
    Object.fromEntries(Object.entries(event).filter(([name]) => fields.includes(name))),
  );
  return { count: events.length, ...(contains.length > 0 ? { contains } : {}) };
}

/** What left the last step; without steps it is what came in. */
export function finalOf(tested: Tested): Event[] {
  return tested.steps.at(-1)?.output ?? tested.input;
}

/** Whether some sink gets other events than leave the last step. */
export function isRouted(tested: Tested): boolean {
  const all = finalOf(tested).length;
  return Object.values(tested.output).some((events) => events.length !== all);
}

const columnsOf = (event: Event): Event =>
  // A field that a test does not name may be null.
  Object.fromEntries(Object.entries(event).filter(([name, value]) => name !== META && value !== null));

/** Events as the server has read them, as one would write them: without numbers and what is empty. */
export function inputOf(tested: Tested): Event[] {
  return tested.input.map((event) => {
    const { offset: _, ...meta } = (event[META] ?? {}) as Event;
    const columns = Object.entries(event).filter(
      ([name, value]) => name !== META && value !== null && !(name in meta) && !name.startsWith("_"),
    );
    return { ...Object.fromEntries(columns), ...(Object.keys(meta).length > 0 ? { [META]: meta } : {}) };
  });
}

/** A name that no test of the document has. */
export function freeName(cases: readonly Case[], word = "test"): string {
  let number = cases.length + 1;
  while (cases.some((each) => each.name === `${word} ${number}`)) number += 1;
  return `${word} ${number}`;
}

/** What a test expects, in a few words. */
export function expectation({ expect = {} }: Case): string {
  const told: string[] = [];
  const { output, sinks, steps, errors } = expect as Record<string, unknown>;
  if (Array.isArray(output)) told.push(`${plural(output.length, "event")} out`);
  else if (output && typeof output === "object") told.push(`output: ${Object.keys(output).join(", ")}`);
  const named = (of: unknown, word: string) => {
    const names = Object.keys((of ?? {}) as object);
    if (names.length > 0) told.push(`${word} ${names.join(", ")}`);
  };
  named(sinks, "sinks");
  named(steps, "steps");
  if (Array.isArray(errors)) told.push(plural(errors.length, "error"));
  return told.join(" · ") || "only that the run finishes";
}
