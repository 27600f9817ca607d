import { describe, expect, it } from "vitest";
import type { Value } from "#/documents/editing/yaml";
import { type Check, columnsBefore, countsByPart, soundPart } from "./check";
import { partOfPath, viewOf } from "./parts";

const problem = (path: string) => ({ code: "x", message: "wrong", path });
const VALUE: Value = {
  spec: {
    source: { type: "generate" },
    processors: [
      { type: "filter", where: "true" },
      { id: "r", type: "route", rules: [] },
      { type: "sql", query: "?" },
    ],
    sinks: [{ type: "drop" }],
  },
};

describe("what is wrong", () => {
  it.each([
    ["spec.processors[3].query", "step:3"],
    ["spec.tasks[0]", "step:0"],
    ["spec.sinks[1]", "sink:1"],
    ["spec.outputs[12].when", "sink:12"],
    ["spec.source.rate", "source"],
    ["spec.input", "source"],
    ["spec.sourcery", "settings"],
    ["spec.batch.max_ms", "settings"],
    ["metadata.name", "settings"],
    [null, "settings"],
  ])("belongs to a part: %s", (path, key) => expect(partOfPath(path)).toBe(key));

  it("is counted by part", () => {
    const check = {
      errors: [problem("spec.source.a"), problem("spec.source.b")],
      warnings: [problem("spec.source")],
    };
    expect(countsByPart(check as Check).get("source")).toEqual({ errors: 2, warnings: 1 });
  });
});

describe("columns", () => {
  it("are asked for up to the first step that is wrong", () => {
    const part = soundPart("pipelines", VALUE, [problem("spec.processors[2].query")]) as {
      spec: Record<string, unknown[]>;
    };
    expect(part.spec.processors).toEqual([
      { type: "filter", where: "true" },
      { id: "r", type: "filter", where: "true" },
    ]);
    expect(part.spec.sinks).toEqual([{ type: "drop" }]);
    expect(soundPart("pipelines", VALUE, [problem("spec.source.rate")])).toBeNull();
  });

  it("come into a part from the one before it", () => {
    const columns = [{ name: "id", type: "bigint" }];
    const check = {
      steps: [
        { id: "source", columns },
        { id: "filter", columns: [] },
      ],
    } as unknown as Check;
    const view = viewOf("pipelines", VALUE);
    expect(columnsBefore(check, view, view.steps[0]!)).toEqual(columns);
    expect(columnsBefore(check, view, view.steps[1]!)).toEqual([]);
    expect(columnsBefore(check, view, view.steps[2]!)).toBeUndefined();
    expect(columnsBefore(check, view, view.sinks[0]!)).toBeUndefined();
  });
});
