import { expect, it } from "vitest";
import { edited, read, textOf } from "./yaml";

const VALUE = { kind: "Pipeline", spec: { tests: [{ input: [{ id: 9223372036854775807n, n: 1 }] }] } };

it("keeps every digit of an integer that is too long for a number", () => {
  expect(textOf(VALUE)).toContain("id: 9223372036854775807\n");
  expect(read(textOf(VALUE)).value).toEqual(VALUE);
  expect(edited(textOf(VALUE), () => undefined)).toBe(textOf(VALUE));
});

it("leaves numbers as they were written", () => {
  const text = "kind: Stream\nspec:\n  wal: { max_segments: 0x10, retention_ms: 1000 }\n";
  expect(read(text).value).toEqual({
    kind: "Stream",
    spec: { wal: { max_segments: 16, retention_ms: 1000 } },
  });
  expect(edited(text, (document) => document.setIn(["kind"], "Pipeline"))).toBe(
    text.replace("Stream", "Pipeline").replace("{ ", "{").replace(" }", "}"),
  );
});
