import { describe, expect, it } from "vitest";
import { parseEvent } from "./event";

describe("an edited event", () => {
  it("is an object with columns", () => {
    expect(parseEvent('{"id": 1}')).toEqual({ event: { id: 1 }, problem: null });
    expect(parseEvent("[1]").problem).toMatch(/object with the input columns/);
    expect(parseEvent("null").problem).toMatch(/object with the input columns/);
    expect(parseEvent("{").problem).toMatch(/Not valid JSON/);
  });
});
