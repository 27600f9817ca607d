import { screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { render } from "#/test/render";
import { clock, extent, looks, sentence, valueAt } from "./chart";
import { rate } from "./format";
import { TimeChart } from "./TimeChart";

const AT = [1_000, 3_000, 5_000];

describe("TimeChart", () => {
  it("says in words what it draws", () => {
    const series = [{ name: "in", label: "Events in", values: [4, null, 2] }];
    render(<TimeChart title="Rate" at={AT} series={series} format={rate} />);
    expect(screen.getByRole("figure", { name: "Rate" })).toBeInTheDocument();
    expect(screen.getByText("Events in: 2/s now, between 2/s and 4/s.")).toBeInTheDocument();
  });

  it("says so when there is nothing to draw", () => {
    const series = [{ name: "in", label: "Events in", values: [null, null, null] }];
    render(<TimeChart title="Rate" at={AT} series={series} format={rate} empty="It is paused." />);
    expect(screen.getByText("It is paused.")).toBeInTheDocument();
  });
});

describe("chart", () => {
  it("leaves gaps out of what it sums up", () => {
    expect(extent([null, 3, null, 1, null])).toEqual({ last: 1, min: 1, max: 3 });
    expect(extent([null])).toBeNull();
    expect(sentence({ name: "lag", label: "Lag", values: [] }, String)).toBe("Lag: no data yet.");
  });

  it("shows the value under the pointer, else the last one", () => {
    expect(valueAt([1, null, 3], 0)).toBe(1);
    expect(valueAt([1, null, 3], 1)).toBeNull();
    expect(valueAt([1, 3, null], null)).toBe(3);
  });

  it("tells lines apart by more than their colour", () => {
    const series = ["a", "b", "c"].map((name) => ({ name, label: name, values: [] }));
    const found = looks(series, "light");
    expect(new Set(found.map(({ dash }) => dash.join())).size).toBe(3);
    expect(new Set(found.map(({ color }) => color)).size).toBe(3);
  });

  it("shows seconds only where steps are that small", () => {
    const at = new Date(2026, 0, 2, 3, 4, 5).getTime();
    expect(clock(at, 300_000)).toBe("03:04");
    expect(clock(at, 5_000)).toBe("03:04:05");
  });
});
