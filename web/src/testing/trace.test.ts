import { describe, expect, it } from "vitest";
import { changes, type Event, type StepResult, trace } from "./trace";

const step = (output: Event[], more: Partial<StepResult> = {}): StepResult => ({
  id: "s",
  type: "sql",
  columns: [],
  output,
  dropped: 0,
  dropped_events: [],
  errors: [],
  late: [],
  logs: [],
  ms: 1,
  ...more,
});
const at = (offset: number | null, fields: Event): Event => ({
  ...fields,
  $meta: offset === null ? {} : { offset },
});

describe("trace", () => {
  it("puts each output beside the input of the same number", () => {
    const [first, second] = trace(
      [step([at(1, { id: 2, x: 1 }), at(0, { id: 1, x: 0 })]), step([at(1, { id: 2 })], { dropped: 1 })],
      [{ id: 1 }, { id: 2 }],
    );
    expect(first!.passages.map((each) => [each.number, each.fate, each.after?.x])).toEqual([
      [0, "passed", 0],
      [1, "passed", 1],
    ]);
    expect(second!.passages.map((each) => [each.number, each.fate])).toEqual([
      [0, "dropped"],
      [1, "passed"],
    ]);
  });

  it("tells dropped, failed and late events apart", () => {
    const [only] = trace(
      [
        step([], {
          dropped: 1,
          dropped_events: [at(0, { id: 1 })],
          errors: [{ code: "bad", message: "is bad", event: at(1, { id: 2 }) }],
          late: [at(2, { id: 3 })],
        }),
      ],
      [{ id: 1 }, { id: 2 }, { id: 3 }],
    );
    expect(only!.passages.map((each) => each.fate)).toEqual(["dropped", "failed", "late"]);
    expect(only!.passages[1]!.error).toEqual({ code: "bad", message: "is bad" });
  });

  it("shows one event that becomes several, and several that become one", () => {
    const several = [at(0, { item: "a" }), at(0, { item: "b" })];
    const [exploded, window] = trace([step(several), step([at(null, { n: 2 })])], [{ items: ["a", "b"] }]);
    expect(exploded!.passages.map((each) => each.after?.item)).toEqual(["a", "b"]);
    expect(window!.passages.map((each) => each.fate)).toEqual(["kept", "kept", "made"]);
  });

  it("follows the one event of a story by whatever offset it has", () => {
    const [only] = trace([step([at(4711, { id: 1, y: 2 })])], [at(4711, { id: 1 })]);
    expect(only!.passages).toHaveLength(1);
    expect(only!.passages[0]).toMatchObject({ number: 0, fate: "passed" });
  });

  it("takes a sample that is a text alone", () => {
    const [only] = trace([step([at(0, { value: "b" })])], ["a"]);
    expect(only!.passages[0]!.before).toEqual({ value: "a" });
  });
});

describe("changes", () => {
  it("marks each field", () => {
    const found = changes({ a: 1, b: 2, c: { d: 1 } }, { a: 1, b: 3, e: 4, c: { d: 1 } });
    expect(Object.fromEntries(found.map((each) => [each.name, each.mark]))).toEqual({
      a: "same",
      b: "changed",
      e: "added",
      c: "same",
    });
    expect(changes({ a: 1, b: 1 }, { a: 1 }).at(-1)).toMatchObject({ name: "b", mark: "removed" });
  });

  it("marks nothing where one side is missing", () => {
    expect(changes({ a: 1 }, null)).toEqual([{ name: "a", mark: "same", before: 1, after: undefined }]);
  });
});
