import uPlot from "uplot";
import type { Look } from "#/components/chart";
import { count, moment } from "#/components/format";
import type { ChartKind, Points } from "./charting";

interface Drawing {
  width: number;
  height: number;
  kind: ChartKind;
  points: Points;
  styles: readonly Look[];
}

/** The options of uPlot for a chart of a result. `element` is where it will be: it has the colors of the theme. */
export function plotOptions(element: Element, drawing: Drawing): uPlot.Options {
  const { kind, points, styles } = drawing;
  const style = getComputedStyle(element);
  const color = (value: string) => style.getPropertyValue(value.slice(4, -1)).trim();
  const axis = {
    stroke: color("var(--mantine-color-dimmed)"),
    font: `11px ${style.fontFamily}`,
    grid: { stroke: color("var(--mantine-color-default-border)"), width: 1 },
    ticks: { show: false },
  };
  const isBar = kind === "bar";
  const { labels } = points;
  return {
    width: drawing.width,
    height: drawing.height,
    ms: 1,
    legend: { show: false },
    padding: [8, 8, 0, 0],
    cursor: { drag: { x: false, y: false } },
    scales: {
      x: { time: false, range: (_, min, max) => xRange(min, max, isBar) },
      y: { range: (_, min, max) => [Math.min(0, min), max > 0 ? max * 1.05 : 1] },
    },
    axes: [
      {
        ...axis,
        size: 30,
        space: points.isTime ? 130 : 80,
        ...(labels ? { incrs: WHOLE } : {}),
        values: (_, splits) => splits.map((at) => (labels ? (labels[at] ?? "") : named(at, points.isTime))),
      },
      { ...axis, size: 64, values: (_, splits) => splits.map(count) },
    ],
    series: [
      {},
      ...styles.map(({ label, color: css, dash }) => ({
        label,
        stroke: color(css),
        fill: isBar ? color(css) : undefined,
        dash: isBar ? undefined : dash,
        width: isBar ? 0 : 1.75,
        spanGaps: false,
        paths: isBar ? uPlot.paths.bars!({ size: [0.9, 60] }) : undefined,
        points: { show: isBar ? false : points.xs.length < 60 },
      })),
    ],
  };
}

/** Bars need room at the ends, and a single point a range around it. */
function xRange(min: number, max: number, isBar: boolean): [number, number] {
  if (isBar) return [Math.round(min) - 0.5, Math.round(max) + 0.5];
  return max > min ? [min, max] : [min - 1, max + 1];
}

const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

const named = (at: number, isTime: boolean) => (isTime ? moment(at) : count(at));
