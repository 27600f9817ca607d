import { describe, expect, it } from "vitest";
import { durationText, fromUnit, understood, unitOf, withUnit } from "./units";

describe("units", () => {
  it("reads and writes durations", () => {
    expect(withUnit(604_800_000, "ms")).toBe("7 d");
    expect(withUnit(5_400_000, "ms")).toBe("1.5 h");
    expect(withUnit(0, "ms")).toBe("0 ms");
    expect(fromUnit("1 h 30 min", "ms")).toBe(5_400_000);
    expect(fromUnit("90s", "ms")).toBe(90_000);
    expect(fromUnit("500", "ms")).toBe(500);
  });

  it("reads and writes sizes", () => {
    expect(withUnit(67_108_864, "bytes")).toBe("64 MiB");
    expect(withUnit(1_000_000, "bytes")).toBe("1000000 B");
    expect(fromUnit("10 GiB", "bytes")).toBe(10 * 1024 ** 3);
    expect(fromUnit("1.5 MB", "bytes")).toBe(1_500_000);
  });

  it("refuses what it does not know", () => {
    expect(fromUnit("soon", "ms")).toBeUndefined();
    expect(fromUnit("5 MiB", "ms")).toBeUndefined();
    expect(fromUnit("-1 s", "ms")).toBeUndefined();
  });

  it("gives every number back exactly", () => {
    for (let round = 0; round < 2000; round += 1) {
      const value = Math.floor(Math.random() ** 4 * 1e13);
      expect(fromUnit(withUnit(value, "ms"), "ms")).toBe(value);
      expect(fromUnit(withUnit(value, "bytes"), "bytes")).toBe(value);
    }
  });

  it("reads words of any length", () => {
    expect(fromUnit("2 hours", "ms")).toBe(7_200_000);
    expect(fromUnit("1 minute 30 seconds", "ms")).toBe(90_000);
    expect(fromUnit("1500", "ms")).toBe(1500);
    expect(fromUnit("3 weeks", "ms")).toBe(1_814_400_000);
  });

  it("explains how a value was understood", () => {
    expect(understood(7_200_000, "ms")).toBe("2 h (7,200,000 ms)");
    expect(understood(5_400_000, "ms")).toBe("1 h 30 min (5,400,000 ms)");
    expect(understood(1500, "ms")).toBe("1 s 500 ms (1,500 ms)");
    expect(understood(500, "ms")).toBe("500 ms");
    expect(understood(0, "ms")).toBe("0 ms");
    expect(understood(67_108_864, "bytes")).toBe("64 MiB (67,108,864 bytes)");
    expect(understood(1_000_000, "bytes")).toBe("1,000,000 bytes");
  });

  it("writes durations as documents do", () => {
    expect([7_200_000, 90_000, 1500, 86_400_000, 0].map(durationText)).toEqual([
      "2h",
      "90s",
      "1500ms",
      "1d",
      "0s",
    ]);
  });

  it("goes by the name of a field", () => {
    expect(unitOf("retention_ms")).toBe("ms");
    expect(unitOf("max_bytes")).toBe("bytes");
    expect(unitOf("items")).toBeUndefined();
  });
});
