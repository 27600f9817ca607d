import { expect, it } from "vitest";
import type { Tested } from "#/testing/cases";
import { viewOf } from "../parts";
import { countAt, ratesAt, type Spot, testedAt } from "./passing";

const view = viewOf("pipelines", {
  spec: {
    source: { type: "http" },
    processors: [{ id: "big", type: "filter" }],
    sinks: [{ id: "lake", type: "file" }],
  },
});
const [source, step, sink] = [view.source!, view.steps[0]!, view.sinks[0]!];
const spot = (after: Spot["after"], to: Spot["sink"] = null): Spot => ({ after, sink: to });

it("knows the events of a test run", () => {
  const tested = {
    input: [{ id: 1 }, { id: 2 }],
    steps: [{ id: "big", output: [{ id: 2 }] }],
    output: { lake: [{ id: 2 }] },
  } as unknown as Tested;
  expect(testedAt(tested, spot(source))).toHaveLength(2);
  expect(testedAt(tested, spot(step))).toEqual([{ id: 2 }]);
  expect(testedAt(tested, spot(step, sink))).toEqual([{ id: 2 }]);
  expect(testedAt({ ...tested, steps: [] }, spot(step))).toBeUndefined();
});

const ops = (input: number, out: number, delivered: number) =>
  ({ input_events: input, processors: { big: { out } }, sinks: { lake: { events: delivered } } }) as never;

it("knows what a flow has counted", () => {
  expect(countAt(ops(10, 4, 3), spot(source))).toBe(10);
  expect(countAt(ops(10, 4, 3), spot(step))).toBe(4);
  expect(countAt(ops(10, 4, 3), spot(step, sink))).toBe(3);
  expect(countAt(null, spot(step))).toBeUndefined();
  const task = { ...step, id: "clean" };
  expect(countAt({ processors: { "clean.a": { out: 1 }, "clean.b": { out: 2 } } } as never, spot(task))).toBe(
    2,
  );
});

it("makes rates of counts, also over a restart", () => {
  const samples = [ops(0, 0, 0), ops(20, 10, 0), ops(5, 1, 0)].map((each, i) => ({
    at: i * 2000,
    ops: each,
  }));
  expect(ratesAt(samples, spot(source))).toEqual([10, 0]);
  expect(ratesAt(samples.slice(0, 1), spot(source))).toEqual([]);
});
