import { expect, it } from "vitest";
import { isChosen, textOf, unmet } from "./conditions";
import type { JsonSchema } from "./schema";

const schema: JsonSchema = {
  type: "object",
  properties: {
    mode: { enum: ["block", "drop", "timeout"], default: "block" },
    timeout_ms: { type: "integer", "x-only-with": { mode: ["timeout", "block"] } },
    spill: { type: "boolean", "x-only-with": { "spec.wal.enabled": [false] } },
    wal: { type: "object", properties: { enabled: { type: "boolean", default: true } } },
  },
};
const found = (name: string, value: Record<string, unknown>) =>
  unmet(schema.properties![name]!, { schema, value }, { schema, value }, schema);

it("goes by the value of a field beside it, or by its default", () => {
  expect(found("timeout_ms", {})).toBeUndefined();
  expect(found("timeout_ms", { mode: "drop" })).toEqual({ name: "mode", values: ["timeout", "block"] });
  expect(found("timeout_ms", { mode: `\${MODE}` })).toBeUndefined();
  expect(found("mode", {})).toBeUndefined();
});

it("looks at other parts of the document", () => {
  expect(found("spill", {})).toEqual({ name: "wal.enabled", values: [false] });
  expect(found("spill", { wal: { enabled: false } })).toBeUndefined();
});

it("is told in words", () => {
  expect(textOf(found("timeout_ms", { mode: "drop" })!)).toBe("`mode: timeout` or `block`");
  expect(textOf(found("spill", {})!)).toBe("`wal.enabled: false`");
});

it("knows whether the choice was made", () => {
  expect(isChosen(schema.properties!.timeout_ms!, {})).toBe(false);
  expect(isChosen(schema.properties!.timeout_ms!, { mode: "timeout" })).toBe(true);
  expect(isChosen(schema.properties!.mode!, { mode: "timeout" })).toBe(false);
});
