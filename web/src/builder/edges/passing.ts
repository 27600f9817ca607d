import type { AnyDocument } from "#/api/kinds";
import type { Tested } from "#/testing/cases";
import type { Event } from "#/testing/trace";
import type { Part } from "../parts";

/** A place on the canvas that events pass: after an input or a step, and before a sink if the edge leads to one. */
export interface Spot {
  after: Part;
  sink: Part | null;
}

/** The events of a test run at a place; undefined if the run has not come so far. */
export function testedAt(tested: Tested, { after, sink }: Spot): readonly Event[] | undefined {
  if (sink) return tested.output[sink.id] as Event[] | undefined;
  if (after.group === "source") return tested.input as Event[];
  return ofStep(after.id, (id) => tested.steps.findLast((step) => id(step.id)))?.output;
}

type Ops = AnyDocument["ops"];

/** How many events of a running flow have passed a place; undefined if the flow has not counted them. */
export function countAt(ops: Ops, { after, sink }: Spot): number | undefined {
  if (!ops) return undefined;
  if (sink) return ops.sinks?.[sink.id]?.events;
  if (after.group === "source") return ops.input_events ?? undefined;
  const steps = Object.entries((ops.processors ?? {}) as Record<string, { out?: number }>);
  return ofStep(after.id, (id) => steps.findLast(([name]) => id(name)))?.[1].out;
}

// The steps of a task are called `task.step`: what leaves the last one leaves the task.
function ofStep<T>(id: string, find: (isIt: (id: string) => boolean) => T | undefined): T | undefined {
  return find((each) => each === id) ?? find((each) => each.startsWith(`${id}.`));
}

/** What a flow had counted at a moment, in milliseconds. */
export interface Sample {
  at: number;
  ops: Ops;
}

/** Events per second at a place, between one sample and the next. */
export function ratesAt(samples: readonly Sample[], spot: Spot): number[] {
  const rates: number[] = [];
  for (let i = 1; i < samples.length; i++) {
    const [before, now] = [samples[i - 1]!, samples[i]!];
    const [was, is] = [countAt(before.ops, spot), countAt(now.ops, spot)];
    // A restarted flow counts from 0.
    if (was !== undefined && is !== undefined)
      rates.push(Math.max(0, ((is - was) * 1000) / (now.at - before.at)));
  }
  return rates;
}
