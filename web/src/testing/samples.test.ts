import { describe, expect, it } from "vitest";
import { detect, formatOfFile, marksIn, readSamples, sampleOf, textOfEvents, withEvent } from "./samples";

describe("detect", () => {
  it.each([
    ['[{"a": 1}]', "json"],
    ['{\n  "a": 1\n}', "json"],
    ['{"a": 1}\n{"a": 2}', "ndjson"],
    ["id,name\n1,ada", "csv"],
    ["GET /index.html 200\nGET / 404", "text"],
    ["", "text"],
  ])("takes %j for %s", (text, format) => expect(detect(text)).toBe(format));

  it("knows the endings of files", () => {
    expect(["a.JSON", "b.jsonl", "c.csv", "d.log", "e.parquet"].map(formatOfFile)).toEqual([
      "json",
      "ndjson",
      "csv",
      "text",
      null,
    ]);
  });
});

describe("readSamples", () => {
  it("makes events of JSON, one or several", () => {
    expect(readSamples('{"a": 1}', "json", false)).toMatchObject({ sent: { events: [{ a: 1 }] }, count: 1 });
    expect(readSamples('{"a": 1}\n\n{"a": 2}\n', "ndjson", false)).toMatchObject({ count: 2 });
  });

  it("says what is Not valid JSON, and where", () => {
    expect(readSamples("[{", "json", false).problem).toMatch(/Not valid JSON/);
    expect(readSamples('{"a": 1}\n{"a"', "ndjson", false).problem).toMatch(/^Line 2/);
    expect(readSamples(" \n", "json", false).problem).toMatch(/No sample event/);
  });

  it("leaves CSV to the server, which knows the columns", () => {
    expect(readSamples("a\n1", "csv", false).sent).toEqual({ text: "a\n1", content_type: "text/csv" });
  });

  it("sends JSON to a raw source as it would be pushed, unless it is written as events", () => {
    const pushed = '[{"a": 1}]';
    expect(readSamples(pushed, "json", true).sent).toEqual({
      text: pushed,
      content_type: "application/json",
    });
    expect(readSamples('[{"value": "x"}, "y"]', "json", true).sent).toEqual({
      events: [{ value: "x" }, "y"],
    });
  });
});

describe("events as text", () => {
  it("is JSON with a line for each", () => {
    const text = textOfEvents([{ a: 1 }, { a: 2 }]);
    expect(JSON.parse(text)).toEqual([{ a: 1 }, { a: 2 }]);
    expect(text.split("\n")).toHaveLength(4);
  });

  it("takes one more at its end", () => {
    expect(JSON.parse(withEvent('[{"a": 1}]', "json", { a: 2 })!)).toHaveLength(2);
    expect(withEvent('{"a": 1}\n', "ndjson", { a: 2 })).toBe('{"a": 1}\n{"a":2}\n');
    expect(JSON.parse(withEvent("", "text", { a: 2 })!)).toEqual([{ a: 2 }]);
    expect(withEvent("a,b\n1,2", "csv", { a: 2 })).toBeNull();
    expect(withEvent("[{", "json", { a: 2 })).toBeNull();
  });

  it("keeps what is known of an event of a stream", () => {
    const time = "2026-01-01T00:00:00Z";
    expect(sampleOf({ offset: 3, time, key: "k", headers: {}, columns: { a: 1 } })).toEqual({
      a: 1,
      $meta: { time, key: "k" },
    });
    expect(sampleOf({ offset: 3, time, key: null, headers: { h: "1" }, value: { base64: "aGk=" } })).toEqual({
      value: "hi",
      $meta: { time, headers: { h: "1" } },
    });
  });
});

describe("marksIn", () => {
  const problem = (path: string, message = "does not fit") => ({ code: "x", message, path, hint: null });

  it("finds the line of an event", () => {
    const text = '[\n  {"a": 1},\n  {"a": "x"}\n]';
    expect(marksIn(text, "json", [problem("events[1]"), problem("spec.source")])).toEqual([
      { message: "does not fit", line: 3 },
    ]);
    expect(marksIn('{"a": 1}\n\n{"a": 2}', "ndjson", [problem("events[1]")])[0]!.line).toBe(3);
  });

  it("believes the server where it tells the line", () => {
    expect(marksIn("a\nx", "csv", [problem("events", "line 2: not a number")])[0]).toMatchObject({ line: 2 });
  });
});
