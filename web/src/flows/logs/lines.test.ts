import { describe, expect, it } from "vitest";
import { appended, type LogLine, MOST_LINES, matching } from "./lines";

const line = (message: string, more: Partial<LogLine> = {}): LogLine => ({
  at: "2026-01-01T00:00:00Z",
  level: "info",
  message,
  step: null,
  sink: null,
  fields: {},
  ...more,
});

describe("log lines", () => {
  it("leaves out what is told once more after the connection was lost", () => {
    const first = appended([], [line("a"), line("b")], false);
    expect(appended(first, [line("b"), line("c")], true).map((each) => each.message)).toEqual([
      "a",
      "b",
      "c",
    ]);
  });

  it("keeps lines that are the same on purpose", () => {
    expect(appended([line("a")], [line("a")], false)).toHaveLength(2);
  });

  it("keeps a bounded number of lines, the newest", () => {
    const many = Array.from({ length: MOST_LINES + 5 }, (_, place) => line(String(place)));
    const kept = appended([], many, false);
    expect(kept).toHaveLength(MOST_LINES);
    expect(kept.at(-1)!.message).toBe(String(MOST_LINES + 4));
  });

  it("finds a text in the message, the place and the details", () => {
    const lines = [line("Hello"), line("x", { step: "clean" }), line("y", { fields: { code: "boom" } })];
    expect(matching(lines, " hello ")).toHaveLength(1);
    expect(matching(lines, "clean")).toHaveLength(1);
    expect(matching(lines, "BOOM")).toHaveLength(1);
    expect(matching(lines, "")).toHaveLength(3);
  });
});
