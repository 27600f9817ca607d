import { describe, expect, it } from "vitest";
import { isComplete, limits, type StreamSettings } from "./estimate";

const HOUR_MS = 3_600_000;
const DEFAULTS: StreamSettings["wal"] = {
  enabled: true,
  retention_ms: 168 * HOUR_MS,
  retention_bytes: null,
  max_segments: 64,
  segment_bytes: 64 * 1024 ** 2,
  segment_ms: HOUR_MS,
  compression: "zstd",
};
const settings = (wal: Partial<StreamSettings["wal"]> = {}): StreamSettings => ({
  wal: { ...DEFAULTS, ...wal },
  buffer: { max_bytes: 1, max_events: 1, spill: false },
});

describe("the estimate of disk", () => {
  it("tells that segments of a busy stream are closed by size", () => {
    const [first] = limits(settings(), 1000, 1024);
    expect(first).toMatchObject({ name: "max segments" });
    expect(first!.bytes).toBeCloseTo(4 * 1024 ** 3);
  });

  it("tells that segments of a quiet stream are closed by age", () => {
    const [first] = limits(settings(), 1, 100);
    expect(first).toMatchObject({ name: "max segments", ms: 64 * HOUR_MS });
    expect(first!.bytes).toBeCloseTo(64 * 3600 * 100);
  });

  it("puts the limit that is reached first in front", () => {
    expect(limits(settings({ retention_ms: HOUR_MS }), 1, 100)[0]!.name).toBe("retention");
    expect(limits(settings({ retention_bytes: 1000 }), 1, 100)[0]).toMatchObject({
      name: "retention bytes",
      bytes: 1000,
    });
    expect(limits(settings({ retention_ms: null }), 1, 100)).toHaveLength(1);
  });

  it("waits while a limit is not valid", () => {
    expect(isComplete(settings())).toBe(true);
    expect(isComplete(settings({ max_segments: "many" as unknown as number }))).toBe(false);
  });
});
