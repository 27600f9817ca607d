import { describe, expect, it } from "vitest";
import type { AnyDocument, KindName } from "#/api/kinds";
import { inputOf, sinkLink, stepsOf } from "./parts";
import { verbsFor } from "./useControls";

const document = (kind: KindName, spec: object, more: object = {}) =>
  ({ kind, name: "x", id: "x", spec, ...more }) as AnyDocument;

const COUNTS = { in: 1, out: 1, dropped: 0, errors: 0, ms: 1, shared: false };

describe("the parts of a flow", () => {
  it("are its steps in the order of the spec, with their counts", () => {
    const spec = { processors: [{ id: "b", type: "sql" }, { type: "filter" }] };
    expect(stepsOf(document("Pipeline", spec, { ops: { processors: { filter: COUNTS } } }))).toEqual([
      { id: "b", type: "sql", counts: null },
      { id: "filter", type: "filter", counts: COUNTS },
    ]);
  });

  it("are those of tasks too, as soon as they have counted", () => {
    const found = stepsOf(document("Pipeline", { tasks: ["t"] }, { ops: { processors: { clean: COUNTS } } }));
    expect(found).toEqual([{ id: "clean", type: null, counts: COUNTS }]);
  });

  it("begin with what the flow reads", () => {
    const link = { kind: "Stream", id: "s" };
    expect(inputOf(document("Task", { input: "s" })).link).toEqual(link);
    expect(inputOf(document("Sink", { type: "file", stream: "s" })).link).toEqual(link);
    expect(inputOf(document("Pipeline", { source: { type: "stream", stream: "s" } })).link).toEqual(link);
    expect(inputOf(document("Pipeline", { source: { ref: "r" } })).link).toEqual({ kind: "Source", id: "r" });
    expect(inputOf(document("Pipeline", { source: { type: "http" } }))).toMatchObject({
      label: "http",
      link: null,
    });
  });

  it("end with streams and sinks that have pages", () => {
    const spec = {
      sinks: [{ id: "a", type: "stream", stream: "s" }, { ref: "r" }, { id: "f", type: "file" }],
    };
    const pipeline = document("Pipeline", spec);
    expect(sinkLink(pipeline, "a")).toEqual({ kind: "Stream", id: "s" });
    expect(sinkLink(pipeline, "r")).toEqual({ kind: "Sink", id: "r" });
    expect(sinkLink(pipeline, "f")).toBeNull();
    expect(sinkLink(document("Task", { outputs: [{ stream: "s" }] }), "s")).toEqual({
      kind: "Stream",
      id: "s",
    });
  });
});

describe("the verbs of a flow", () => {
  it("are those that make sense", () => {
    expect(verbsFor({ status: "active" })).toEqual(["pause", "restart", "stop"]);
    expect(verbsFor({ status: "paused" })).toEqual(["resume", "stop"]);
    expect(verbsFor({ status: "failed" })).toEqual(["start"]);
    expect(verbsFor({ status: null })).toEqual([]);
  });
});
