import type uPlot from "uplot";
import { bytes } from "./format";

/** A line of a chart. */
export interface ChartSeries {
  name: string;
  label: string;
  /** A colour of the theme, such as `red`; else the next one of the palette. */
  color?: string;
  /** One for each moment; null where nothing is known. */
  values: readonly (number | null)[];
}

/** How the lines look: never by their colour alone. */
export interface Look {
  label: string;
  color: string;
  dash: number[];
}

const PALETTE = ["penstock", "orange", "grape", "green", "indigo", "pink"];
const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3]];

/** The looks of lines, as CSS colours that read well on the scheme's background. */
export function looks(series: readonly ChartSeries[], scheme: "light" | "dark"): Look[] {
  const shade = scheme === "dark" ? 4 : 7;
  return series.map(({ label, color }, place) => ({
    label,
    color: `var(--mantine-color-${color ?? PALETTE[place % PALETTE.length]}-${shade})`,
    dash: DASHES[place % DASHES.length]!,
  }));
}

/** The last, least and largest value of a line; null if nothing is known of it. */
export function extent(
  values: readonly (number | null)[],
): { last: number; min: number; max: number } | null {
  let last: number | null = null;
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (value === null) continue;
    last = value;
    min = Math.min(min, value);
    max = Math.max(max, value);
  }
  return last === null ? null : { last, min, max };
}

/** A line in a sentence, for those who do not see it. */
export function sentence(series: ChartSeries, format: (value: number) => string): string {
  const found = extent(series.values);
  if (found === null) return `${series.label}: no data yet.`;
  const { last, min, max } = found;
  return `${series.label}: ${format(last)} now, between ${format(min)} and ${format(max)}.`;
}

/** The value at a place, or the last one that is known. */
export function valueAt(values: readonly (number | null)[], place: number | null): number | null {
  return place === null ? (extent(values)?.last ?? null) : (values[place] ?? null);
}

/** A moment that is marked by a line, such as the deployment of a revision. */
export interface ChartMark {
  at: number;
  label: string;
}

/** A time range in milliseconds since 1970. */
export interface Span {
  from: number;
  to: number;
}

/** The least time that can be zoomed into: a few samples. */
const NARROWEST_MS = 5_000;

interface Drawing {
  width: number;
  height: number;
  looks: readonly Look[];
  format: (value: number) => string;
  /** Minutes that the time axis spans; else just what there is. */
  minutes?: number;
  /** The time axis, if it is not the last minutes. */
  span?: Span;
  sync?: string;
  marks: () => readonly ChartMark[];
  onCursor: (place: number | null) => void;
  /** Is given the time range that was dragged over; without it nothing can be. */
  onZoom?: (span: Span) => void;
}

/** The options of uPlot. `element` is where it will be: it has the colours of the theme. */
export function options(element: Element, drawing: Drawing): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (value: string) => style.getPropertyValue(value.slice(4, -1)).trim();
  const text = colour("var(--mantine-color-dimmed)");
  const axis = {
    stroke: text,
    font: `11px ${style.fontFamily}`,
    grid: { stroke: colour("var(--mantine-color-default-border)"), width: 1 },
    ticks: { show: false },
  };
  const { minutes, span, format, sync, onZoom } = drawing;
  const marked = colour("var(--mantine-color-grape-6)");
  return {
    width: drawing.width,
    height: drawing.height,
    ms: 1,
    legend: { show: false },
    padding: [8, 8, 0, 0],
    cursor: {
      y: false,
      drag: { x: onZoom !== undefined, y: false, setScale: false },
      points: { size: 6 },
      ...(sync === undefined ? {} : { sync: { key: sync, scales: ["x", null] } }),
    },
    scales: {
      x: {
        range: (_, min, max) =>
          span
            ? [span.from, span.to]
            : [minutes ? max - minutes * 60_000 : min, max > min ? max : min + 1000],
      },
      y: { range: (_, min, max) => [Math.min(0, min), max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      {
        ...axis,
        size: 28,
        space: 70,
        values: (_, splits, __, ___, step) => splits.map((at) => clock(at, step)),
      },
      { ...axis, size: widest, space: 34, incrs: steps(format), values: (_, splits) => splits.map(format) },
    ],
    series: [
      {},
      ...drawing.looks.map((look) => ({
        label: look.label,
        stroke: colour(look.color),
        dash: look.dash,
        width: 1.75,
        points: { show: false, filter: lonely, size: 5 },
      })),
    ],
    hooks: {
      setCursor: [(plot) => drawing.onCursor(plot.cursor.idx ?? null)],
      setSelect: [
        (plot) => {
          const dragged = draggedSpan(plot);
          if (dragged) onZoom?.(dragged);
        },
      ],
      draw: [(plot) => drawMarks(plot, drawing.marks(), marked, axis.font)],
    },
  };
}

/** The time range that was dragged over, which is then no longer marked; null if there is none. */
function draggedSpan(plot: uPlot): Span | null {
  const { left, width } = plot.select;
  if (width <= 0) return null;
  const from = plot.posToVal(left, "x");
  const to = plot.posToVal(left + width, "x");
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  return to - from < NARROWEST_MS ? null : { from: Math.round(from), to: Math.round(to) };
}

/** Dashed lines across the chart with their labels at the top. A label that the next line would cross is left out. */
function drawMarks(plot: uPlot, marks: readonly ChartMark[], color: string, font: string): void {
  const { ctx, bbox } = plot;
  const { min, max } = plot.scales.x!;
  ctx.save();
  ctx.strokeStyle = color;
  ctx.fillStyle = color;
  ctx.textAlign = "left";
  ctx.font = font.replace(/^(\d+)px/, (_, size) => `${Number(size) * devicePixelRatio}px`);
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  let free = bbox.left + bbox.width;
  for (const { at, label } of marks.toSorted((one, other) => other.at - one.at)) {
    if (min == null || max == null || at < min || at > max) continue;
    const x = plot.valToPos(at, "x", true);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const begin = x + 3 * devicePixelRatio;
    if (begin + ctx.measureText(label).width <= free) {
      ctx.fillText(label, begin, bbox.top + 10 * devicePixelRatio);
    }
    free = x;
  }
  ctx.restore();
}

/** Points are drawn only where a line would not show: a value between two gaps. */
const lonely: uPlot.Series.Points.Filter = (plot, place) => {
  const values = plot.data[place]!;
  const found: number[] = [];
  for (let at = 0; at < values.length; at++) {
    if (values[at] != null && values[at - 1] == null && values[at + 1] == null) found.push(at);
  }
  return found;
};

const POWERS_OF_TWO = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** Bytes are read in powers of two: 64 MiB, not 61.04 MiB. */
const steps = (format: (value: number) => string) => (format === bytes ? POWERS_OF_TWO : undefined);

const pad = (part: number) => String(part).padStart(2, "0");

/** A moment of the time axis in the reader's time zone; seconds where the steps are that small. */
export function clock(at: number, step: number): string {
  const date = new Date(at);
  const short = `${pad(date.getHours())}:${pad(date.getMinutes())}`;
  return step < 60_000 ? `${short}:${pad(date.getSeconds())}` : short;
}

const widest: uPlot.Axis.Size = (_, labels) => {
  const longest = Math.max(0, ...(labels ?? []).map((label) => label.length));
  return Math.max(36, longest * 6.5 + 14);
};
