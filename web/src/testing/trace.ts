import type { Schemas } from "#/api/client";

export type StepResult = Schemas["StepResult"];
export type Event = Record<string, unknown>;

export type Mark = "added" | "changed" | "removed" | "same";

/** One field of an event, before and after a step. */
export interface FieldChange {
  name: string;
  mark: Mark;
  before: unknown;
  after: unknown;
}

/**
 * What a step made of an event. `made` is an event that comes from several or from none, such as a window's;
 * `kept` is one that the step has taken in and not let out by itself.
 */
export type Fate = "passed" | "dropped" | "failed" | "late" | "made" | "kept";

export interface Passage {
  /** The number of the event that it began with; null if it comes from several. */
  number: number | null;
  fate: Fate;
  before: Event | null;
  after: Event | null;
  error?: { code: string; message: string };
}

export interface TracedStep {
  step: StepResult;
  passages: Passage[];
}

export const META = "$meta";

/** Each step's output beside its input, event by event. */
export function trace(steps: readonly StepResult[], input: readonly unknown[]): TracedStep[] {
  let given = input.map((event, number) => ({ number: number as number | null, event: asEvent(event) }));
  // A story has one event, whose offset is that of its stream and not its number.
  const only = input.length === 1;
  const numberOf = (event: Event) => (offsetOf(event) === null ? null : only ? 0 : offsetOf(event));
  return steps.map((step) => {
    const passages = passagesOf(step, given, numberOf);
    given = step.output.map((event) => ({ number: numberOf(event), event }));
    return { step, passages };
  });
}

function passagesOf(
  step: StepResult,
  given: { number: number | null; event: Event }[],
  numberOf: (event: Event) => number | null,
): Passage[] {
  const dropped = [...step.dropped_events];
  const late = [...step.late];
  const errors = [...step.errors];
  const output = step.output.map((event) => ({ number: numberOf(event), event }));
  const found: Passage[] = [];
  let unseen = step.dropped - step.dropped_events.length; // dropped events that the step does not name
  const waiting: typeof given = [];
  for (const { number, event } of given) {
    // Values are written in other ways here and there, so they decide only between events of one number.
    const alone = number !== null && given.filter((each) => each.number === number).length === 1;
    const same = (other: Event) => numberOf(other) === number && (alone || alike(other, event));
    const error = take(errors, (each) => same(each.event));
    if (error) {
      const { code, message } = error;
      found.push({ number, fate: "failed", before: event, after: null, error: { code, message } });
    } else if (take(dropped, same)) {
      found.push({ number, fate: "dropped", before: event, after: null });
    } else if (take(late, same)) {
      found.push({ number, fate: "late", before: event, after: null });
    } else {
      waiting.push({ number, event });
    }
  }
  for (const { number, event } of waiting) {
    const after = number === null ? undefined : take(output, (each) => each.number === number)?.event;
    if (after) {
      found.push({ number, fate: "passed", before: event, after });
      continue;
    }
    const lost = unseen > 0;
    if (lost) unseen -= 1;
    found.push({ number, fate: lost ? "dropped" : "kept", before: event, after: null });
  }
  // One event may have become several; those without a number come from several events.
  for (const { number, event } of output) {
    const before = number === null ? null : (given.find((each) => each.number === number)?.event ?? null);
    found.push({ number, fate: before ? "passed" : "made", before, after: event });
  }
  for (const { code, message, event } of errors) {
    found.push({
      number: numberOf(event),
      fate: "failed",
      before: event,
      after: null,
      error: { code, message },
    });
  }
  return found.sort((a, b) => (a.number ?? Infinity) - (b.number ?? Infinity));
}

/** The fields of an event in the order in which they come out, then those that are gone. */
export function changes(before: Event | null, after: Event | null): FieldChange[] {
  const names = new Set([...Object.keys(after ?? {}), ...Object.keys(before ?? {})]);
  names.delete(META);
  return [...names].map((name) => {
    const [was, is] = [before?.[name], after?.[name]];
    const mark = !after || !before ? "same" : markOf(name in before, name in after, was, is);
    return { name, mark, before: was, after: is };
  });
}

function markOf(had: boolean, has: boolean, was: unknown, is: unknown): Mark {
  if (!had) return "added";
  if (!has) return "removed";
  return JSON.stringify(was) === JSON.stringify(is) ? "same" : "changed";
}

/** Why a step of a type lets an event go no further. */
export function whyDropped(type: string): string {
  const known: Record<string, string> = {
    filter: "the condition is not true for this event",
    sql: "the query does not select it",
    javascript: "the script returned nothing for it",
    python: "the function returned nothing for it",
    dedupe: "duplicate of an earlier event",
    sample: "not part of the sample",
    throttle: "over the rate limit",
    validate: "the event breaks a rule whose action is to drop it",
    explode: "the list is empty",
    join: "no matching event was found",
    route: "no rule selects a sink for this event",
  };
  return known[type] ?? "the step filtered it out; this is not an error";
}

function offsetOf(event: Event): number | null {
  const offset = (event[META] as { offset?: unknown } | undefined)?.offset;
  return typeof offset === "number" ? offset : null;
}

/** A sample may be a text alone, which is the value of a raw event. */
function asEvent(event: unknown): Event {
  return typeof event === "object" && event !== null && !Array.isArray(event)
    ? (event as Event)
    : { value: event };
}

/** Whether two events have the same values where both have the field. */
function alike(a: Event, b: Event): boolean {
  return Object.keys(a).every(
    (name) => name === META || !(name in b) || JSON.stringify(a[name]) === JSON.stringify(b[name]),
  );
}

function take<T>(list: T[], wanted: (each: T) => boolean): T | undefined {
  const place = list.findIndex(wanted);
  return place < 0 ? undefined : list.splice(place, 1)[0];
}
