import { describe, expect, it } from "vitest";
import { applied, isApplied, PRESETS } from "./presets";

const preset = (title: string) => PRESETS.find((each) => each.title === title)!;

describe("presets", () => {
  it("set their fields and leave the others", () => {
    const spec = { schema: "id BIGINT", wal: { batch: { max_bytes: 5 } }, buffer: { mode: "drop" } };
    expect(applied(spec, preset("Lowest latency"))).toEqual({
      schema: "id BIGINT",
      wal: { enabled: false, sync: false, batch: { max_bytes: 5, max_ms: 0 } },
      buffer: { mode: "drop" },
    });
    expect(spec.wal).toEqual({ batch: { max_bytes: 5 } });
  });

  it("know whether they are in use", () => {
    for (const each of PRESETS) {
      expect(isApplied({}, each)).toBe(false);
      expect(isApplied(applied({}, each), each)).toBe(true);
    }
  });
});
