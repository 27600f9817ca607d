import { describe, expect, it } from "vitest";
import { firstChoice, pointsOf } from "./charting";

const column = (name: string, type: string) => ({ name, type });
const result = (columns: { name: string; type: string }[], rows: unknown[][]) => ({
  columns,
  rows,
  truncated: false,
  ms: 1,
});

describe("the chart of a result", () => {
  it("begins with a line over a time, else with bars", () => {
    const timed = result([column("at", "timestamp"), column("n", "bigint")], []);
    expect(firstChoice(timed)).toEqual({ kind: "line", x: 0, ys: [1] });
    const named = result([column("total", "decimal(10,2)"), column("customer", "string")], []);
    expect(firstChoice(named)).toEqual({ kind: "bar", x: 1, ys: [0] });
    expect(firstChoice(result([column("a", "string")], []))).toBeNull();
  });

  it("sorts a line by time, and reads decimals", () => {
    const found = result(
      [column("at", "timestamp"), column("n", "decimal(3,1)")],
      [
        ["2026-01-01T00:00:02Z", "2.5"],
        ["2026-01-01T00:00:01Z", null],
        [null, "9"],
      ],
    );
    const points = pointsOf(found, { kind: "line", x: 0, ys: [1] });
    expect(points.xs.map((at) => at - points.xs[0]!)).toEqual([0, 1000]);
    expect(points.series).toEqual([[null, 2.5]]);
  });

  it("puts the bars of a row beside each other", () => {
    const found = result(
      [column("who", "string"), column("a", "int"), column("b", "int")],
      [
        ["ada", 1, 2],
        [null, 3, 4],
      ],
    );
    const { xs, series, labels } = pointsOf(found, { kind: "bar", x: 0, ys: [1, 2] });
    expect(labels).toEqual(["ada", "NULL"]);
    expect(xs.map((x) => Number(x.toFixed(1)))).toEqual([-0.2, 0.2, 0.8, 1.2]);
    expect(series).toEqual([
      [1, null, 3, null],
      [null, 2, null, 4],
    ]);
  });
});
