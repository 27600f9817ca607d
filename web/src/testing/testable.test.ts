import { describe, expect, it } from "vitest";
import catalogue from "#/test/catalogue.json";
import { answersBegin, answersOf } from "./given";
import { askingSteps, NO_SINK, sourceOnly, streamOf, testable } from "./testable";

const USER = { id: "user", type: "http", url: "https://u/{id}", schema: "tier INT" };
const PIPELINE = { spec: { source: { type: "http" }, processors: [{ type: "filter" }, USER] } };
const ABOUT = "Calls. In a test run nothing is called: the answers\n  are given.";
const PROCESSORS = [
  { type: "filter", description: "Lets events pass." },
  { type: "http", description: ABOUT },
] as never;

describe("testable", () => {
  it("fills in what is not written yet", () => {
    const made = testable({ metadata: { name: "" }, ...PIPELINE }, "pipelines");
    expect(made).toMatchObject({
      kind: "Pipeline",
      metadata: { name: "untitled" },
      spec: { sinks: [{ id: NO_SINK, type: "drop" }] },
    });
    const task = testable({ kind: "Task", metadata: { name: "t" }, spec: {} }, "tasks");
    expect(task).toEqual({ kind: "Task", metadata: { name: "t" }, spec: {} });
  });

  it("finds the stream that is read", () => {
    expect(streamOf({ spec: { input: "Some Clicks" } }, "tasks")).toBe("some_clicks");
    expect(streamOf({ spec: { source: { type: "stream", stream: "a" } } }, "pipelines")).toBe("a");
    expect(streamOf({ metadata: { name: "A B" }, ...PIPELINE }, "pipelines")).toBe("a_b.in");
    expect(streamOf({ spec: { source: { type: "generate" } } }, "pipelines")).toBeNull();
  });
});

it("asks for the columns of the source alone", () => {
  expect(sourceOnly(PIPELINE, "pipelines")).toMatchObject({ spec: { source: { type: "http" } } });
  expect(sourceOnly({ spec: { input: "a" } }, "tasks")).toMatchObject({
    spec: { source: { type: "stream", stream: "a" } },
  });
  expect(sourceOnly({}, "pipelines")).toBeNull();
});

describe("steps that ask the outside", () => {
  const refused = (step: string) => ({
    code: "needs_answer",
    message: `the step '${step}' asks outside, which a test run does not`,
    path: null,
    hint: null,
  });

  it("are those that say so, and those that were refused", () => {
    const found = askingSteps(PIPELINE, "pipelines", PROCESSORS, [refused("user"), refused("task.other")]);
    expect(found).toMatchObject([
      { id: "user", isNeeded: true, about: "In a test run nothing is called: the answers are given." },
      { id: "task.other", isNeeded: true },
    ]);
  });

  it("are given what was written, and only if it is JSON", () => {
    const steps = askingSteps(PIPELINE, "pipelines", PROCESSORS, []);
    expect(answersOf({ user: '[{"tier": 1}]', gone: "1" }, steps)).toEqual({
      given: { user: [{ tier: 1 }] },
      faults: {},
    });
    expect(answersOf({ user: "[" }, steps).faults.user).toMatch(/Not valid JSON/);
    expect(JSON.parse(answersBegin(steps[0]!, 2))).toEqual([{ tier: 1 }, { tier: 2 }]);
    const table = { ...steps[0]!, fields: { on: { country: "code" }, columns: "name STRING" } };
    expect(JSON.parse(answersBegin(table, 1))).toEqual([{ code: "code 1", name: "name 1" }]);
  });
});

it("the descriptions of processors say which they are", () => {
  const asking = catalogue.filter(({ schema }) => schema.description?.includes("In a test run"));
  expect(asking.map((each) => each.type)).toEqual(expect.arrayContaining(["http", "join", "lookup"]));
});
