import { describe, expect, it } from "vitest";
import { caseOf, casesOf, expectation, freeName, inputOf, isRouted, type Tested, type Wish } from "./cases";

const TESTED: Tested = {
  ok: true,
  input: [
    { id: 1, key: "k", headers: null, $meta: { offset: 0, key: "k" } },
    { id: 2, key: null, headers: null, $meta: { offset: 1 } },
    { id: 3, key: null, headers: null, $meta: { offset: 2 } },
  ],
  steps: [
    {
      id: "paid",
      type: "filter",
      columns: [],
      output: [{ id: 1, note: null, $meta: { offset: 0 } }],
      dropped: 1,
      dropped_events: [],
      errors: [{ code: "bad", message: "is bad", event: {} }],
      late: [],
      logs: [],
      ms: 1,
    },
  ],
  output: { all: [{ id: 1, note: null, $meta: { offset: 0 } }], few: [] },
  errors: [],
  warnings: [],
  ms: 1,
  cases: null,
};
const WISH: Wish = { name: "one", way: "exactly", fields: [], sinks: false, dropped: false };

describe("caseOf", () => {
  it("expects what came out, and the errors", () => {
    expect(caseOf(WISH, [{ id: 1 }], {}, TESTED)).toEqual({
      name: "one",
      input: [{ id: 1 }],
      expect: { output: [{ id: 1 }], errors: [{ step: "paid", code: "bad" }] },
    });
  });

  it("expects as much as one likes", () => {
    const wish: Wish = { name: "two", way: "fields", fields: ["id"], sinks: true, dropped: true };
    expect(caseOf(wish, [], { user: [] }, TESTED)).toEqual({
      name: "two",
      input: [],
      given: { user: [] },
      expect: {
        output: { count: 1, contains: [{ id: 1 }] },
        sinks: { all: { count: 1, contains: [{ id: 1 }] }, few: { count: 0 } },
        steps: { paid: { dropped: 1 } },
        errors: [{ step: "paid", code: "bad" }],
      },
    });
    expect(caseOf({ ...WISH, way: "count" }, [], {}, TESTED).expect.output).toEqual({ count: 1 });
  });
});

it("writes the samples as one would", () => {
  expect(inputOf(TESTED)).toEqual([{ id: 1, $meta: { key: "k" } }, { id: 2 }, { id: 3 }]);
});

it("sees whether sinks get different events", () => {
  expect(isRouted(TESTED)).toBe(true);
  expect(isRouted({ ...TESTED, output: { all: TESTED.output.all! } })).toBe(false);
});

describe("the cases of a document", () => {
  it("are read, named and told", () => {
    const tests = [{ name: "test 2", input: [], expect: { output: [{}], steps: { a: { dropped: 1 } } } }, 5];
    const cases = casesOf({ spec: { tests } });
    expect(cases).toHaveLength(1);
    expect(casesOf({})).toEqual([]);
    expect(freeName(cases)).toBe("test 3");
    expect(expectation(cases[0]!)).toBe("1 event out · steps a");
  });
});
