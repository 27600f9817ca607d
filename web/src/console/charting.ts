import type { QueryResult } from "./api";

export type ChartKind = "line" | "bar";

/** What a chart shows of a result. */
export interface Choice {
  kind: ChartKind;
  /** The place of the column along the axis. */
  x: number;
  /** The places of the columns with numbers. */
  ys: number[];
}

/** Points in the order in which they are drawn, ready for uPlot. */
export interface Points {
  xs: number[];
  /** For each column of numbers a list as long as `xs`. */
  series: (number | null)[][];
  /** Names of the places along the axis, if they are no numbers or times. */
  labels: string[] | null;
  isTime: boolean;
}

/** More bars than this can't be told apart. */
export const MOST_BARS = 200;

export const isNumeric = (type: string) => /^(tinyint|smallint|int|bigint|float|double|decimal)/.test(type);
const isTime = (type: string) => /^(timestamp|date)/.test(type);

/** A first choice: a line over a time, else a bar for each row; null if there is no number to draw. */
export function firstChoice({ columns }: QueryResult): Choice | null {
  const times = columns.flatMap(({ type }, at) => (isTime(type) ? [at] : []));
  const texts = columns.flatMap(({ type }, at) => (isTime(type) || isNumeric(type) ? [] : [at]));
  const numbers = columns.flatMap(({ type, name }, at) =>
    isNumeric(type) && name !== "_offset" ? [at] : [],
  );
  const x = times[0] ?? texts[0] ?? 0;
  const y = numbers.find((at) => at !== x);
  return y === undefined ? null : { kind: times.length > 0 ? "line" : "bar", x, ys: [y] };
}

/** The points of a chart. Lines over numbers and times are sorted by them; anything else keeps its order. */
export function pointsOf({ columns, rows }: QueryResult, { kind, x, ys }: Choice): Points {
  const type = columns[x]?.type ?? "";
  if (kind === "line" && (isTime(type) || isNumeric(type))) {
    const read = isTime(type) ? (value: unknown) => Date.parse(String(value)) : number;
    const found = rows
      .map((row) => ({ at: read(row[x]), row }))
      .filter((each): each is { at: number; row: unknown[] } => each.at !== null && !Number.isNaN(each.at))
      .sort((one, other) => one.at - other.at);
    return {
      xs: found.map(({ at }) => at),
      series: ys.map((y) => found.map(({ row }) => number(row[y]))),
      labels: null,
      isTime: isTime(type),
    };
  }
  const drawn = kind === "bar" ? rows.slice(0, MOST_BARS) : rows;
  const labels = drawn.map((row) => (row[x] === null ? "NULL" : String(plain(row[x]))));
  if (kind === "line") {
    const series = ys.map((y) => drawn.map((row) => number(row[y])));
    return { xs: drawn.map((_, at) => at), series, labels, isTime: false };
  }
  // The bars of a row stand beside each other: each series has places of its own.
  const width = 0.8 / ys.length;
  const places = drawn.flatMap((_, at) => ys.map((__, s) => at + (s - (ys.length - 1) / 2) * width));
  const series = ys.map((y, s) =>
    drawn.flatMap((row) => ys.map((_, t) => (t === s ? number(row[y]) : null))),
  );
  return { xs: places, series, labels, isTime: false };
}

const plain = (value: unknown) => (typeof value === "object" ? JSON.stringify(value) : value);

/** A number, also of a decimal, which comes as text. */
function number(value: unknown): number | null {
  if (value === null || value === undefined || value === "") return null;
  const found = Number(value);
  return Number.isFinite(found) ? found : null;
}
