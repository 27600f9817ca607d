import { describe, expect, it } from "vitest";
import { orderOf, problemAt, type ReplayForm, unplaced } from "./replayOrder";

const FORM: ReplayForm = {
  from: "offset:3",
  to: "",
  target: "all",
  sinks: [],
  path: "",
  stream: "",
  name: " ",
};

describe("replay order", () => {
  it("is what the server takes", () => {
    expect(orderOf(FORM)).toEqual({ from: "offset:3", to: null, sinks: "all", name: null });
    expect(orderOf({ ...FORM, target: "some", sinks: ["lake"] })?.sinks).toEqual(["lake"]);
    expect(orderOf({ ...FORM, target: "file", path: " out " })?.sinks).toEqual({
      shadow: { type: "file", path: "out", format: "json" },
    });
    expect(orderOf({ ...FORM, target: "stream", stream: "s" })?.sinks).toEqual({
      shadow: { type: "stream", stream: "s" },
    });
  });

  it("is none while something is missing", () => {
    expect(orderOf({ ...FORM, from: "" })).toBeNull();
    expect(orderOf({ ...FORM, target: "some" })).toBeNull();
    expect(orderOf({ ...FORM, target: "file", path: " " })).toBeNull();
    expect(orderOf({ ...FORM, target: "stream" })).toBeNull();
  });

  it("shows problems at their fields, and the others above", () => {
    const problems = [
      { code: "a", message: "is wrong", path: "sinks.shadow.path", hint: "write it so" },
      { code: "b", message: "reads no stream", path: null, hint: null },
    ];
    expect(problemAt(problems, "sinks")).toBe("is wrong. write it so");
    expect(problemAt(problems, "from")).toBeUndefined();
    expect(unplaced(problems)).toEqual([problems[1]]);
  });
});
