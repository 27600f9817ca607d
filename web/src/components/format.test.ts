import { describe, expect, it } from "vitest";
import { ago, bytes, count, duration, plural, rate, shortMoment } from "./format";

describe("format", () => {
  it("shows bytes in powers of 1024", () => {
    expect(bytes(0)).toBe("0 B");
    expect(bytes(1536)).toBe("1.5 KiB");
    expect(bytes(64 * 1024 * 1024)).toBe("64 MiB");
    expect(bytes(null)).toBe("–");
  });

  it("shows small counts exactly and large ones short", () => {
    expect(count(9999)).toBe("9,999");
    expect(count(12_345)).toBe("12.3 k");
    expect(count(1_234_567)).toBe("1.23 M");
    expect(rate(0.04)).toBe("0/s");
    expect(rate(99.96)).toBe("100/s");
  });

  it("shows durations by their two largest units", () => {
    expect(duration(250)).toBe("250 ms");
    expect(duration(90_000)).toBe("1 min 30 s");
    expect(duration(604_800_000)).toBe("7 d");
    expect(ago(1_000, 4_500)).toBe("3 s ago");
  });

  it("shows a moment in little room", () => {
    const noon = new Date(2026, 10, 18, 12, 30).getTime();
    expect(shortMoment(noon, noon + 60_000)).toBe("12:30:00");
    expect(shortMoment(noon, noon + 86_400_000)).toBe("2026-11-18");
  });

  it("puts the noun of a number in the right form", () => {
    expect(plural(1, "event")).toBe("1 event");
    expect(plural(0, "event")).toBe("0 events");
    expect(plural(12_345, "event")).toBe("12.3 k events");
    expect(plural(2, "batch")).toBe("2 batches");
    expect(plural(null, "event")).toBe("– events");
  });
});
