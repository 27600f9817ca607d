import "uplot/dist/uPlot.min.css";
import { Center, Group, Text, useComputedColorScheme, VisuallyHidden } from "@mantine/core";
import { useEffect, useId, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import {
  type ChartMark,
  type ChartSeries,
  type Look,
  looks,
  options,
  type Span,
  sentence,
  valueAt,
} from "./chart";
import { moment } from "./format";
import classes from "./TimeChart.module.css";

export type { ChartMark, ChartSeries, Span } from "./chart";

interface Props {
  title: string;
  /** Moments in milliseconds since 1970, rising. */
  at: readonly number[];
  series: readonly ChartSeries[];
  format: (value: number) => string;
  height?: number;
  /** Minutes that the time axis spans; else just what there is. */
  minutes?: number;
  /** The time axis, if it is not the last minutes. */
  span?: Span;
  /** Moments that are marked by a line. */
  marks?: readonly ChartMark[];
  /** Is given the time range that was dragged over. */
  onZoom?: (span: Span) => void;
  /** Charts with the same key show the same moment under the pointer. */
  sync?: string;
  /** What is said while there is nothing to show. */
  empty?: string;
}

const UNMARKED: readonly ChartMark[] = [];
const NOTHING = "No data yet. Charts appear a few seconds after the first events.";
/** What a chart says of a flow that has processed events, but none in the time that is shown. */
export const NONE_THEN = "No data in this time range.";

/** Numbers over time: lines with their values at the pointer, and the same in words. */
export function TimeChart({
  title,
  at,
  series,
  format,
  height = 180,
  minutes,
  span,
  marks = UNMARKED,
  onZoom,
  sync,
  empty = span ? NONE_THEN : NOTHING,
}: Props) {
  const [place, setPlace] = useState<number | null>(null);
  const scheme = useComputedColorScheme("light");
  const styles = useMemo(() => looks(series, scheme), [series, scheme]);
  const heading = useId();
  const isEmpty = at.length === 0 || series.every(({ values }) => values.every((value) => value === null));
  const shown = place !== null && place < at.length ? place : null;
  return (
    <figure className={classes.figure} aria-labelledby={heading}>
      <Group justify="space-between" gap={4} mb={4} component="figcaption" wrap="wrap">
        <Text fw={600} size="sm" id={heading}>
          {title}
        </Text>
        <Text size="xs" c="dimmed" aria-hidden className={classes.numbers}>
          {shown === null ? (span ? moment(at.at(-1)) : "now") : moment(at[shown])}
        </Text>
      </Group>
      {isEmpty ? (
        <Center h={height} className={classes.empty}>
          <Text size="sm" c="dimmed" ta="center">
            {empty}
          </Text>
        </Center>
      ) : (
        <>
          <Lines
            {...{ at, series, styles, format, height, minutes, span, marks, onZoom, sync }}
            onCursor={setPlace}
          />
          <Group gap="md" mt={4} aria-hidden>
            {series.map((each, index) => (
              <Key
                key={each.name}
                look={styles[index]!}
                value={valueAt(each.values, shown)}
                format={format}
              />
            ))}
          </Group>
          <VisuallyHidden>
            {series.map((each) => sentence(each, format)).join(" ")}
            {marks.map(({ at, label }) => ` ${label}: ${moment(at)}.`).join("")}
          </VisuallyHidden>
        </>
      )}
    </figure>
  );
}

function Key({ look, value, format }: { look: Look; value: number | null; format: Props["format"] }) {
  return (
    <Group gap={6} wrap="nowrap">
      <svg width={18} height={8} aria-hidden="true">
        <line
          x1={0}
          x2={18}
          y1={4}
          y2={4}
          strokeWidth={2}
          stroke={look.color}
          strokeDasharray={look.dash.join(" ")}
        />
      </svg>
      <Text size="xs" c="dimmed">
        {look.label}
      </Text>
      <Text size="xs" fw={600} className={classes.numbers}>
        {value === null ? "–" : format(value)}
      </Text>
    </Group>
  );
}

interface LinesProps
  extends Pick<Props, "at" | "series" | "format" | "minutes" | "span" | "sync" | "onZoom"> {
  styles: readonly Look[];
  marks: readonly ChartMark[];
  height: number;
  onCursor: (place: number | null) => void;
}

/** The canvas. It is made anew only when the lines are other ones; new numbers and sizes are given to it. */
function Lines({
  at,
  series,
  styles,
  format,
  height,
  minutes,
  span,
  marks,
  onZoom,
  sync,
  onCursor,
}: LinesProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const width = useWidth(box);
  const data = useMemo(
    () => [at, ...series.map(({ values }) => values)] as unknown as uPlot.AlignedData,
    [at, series],
  );
  const latest = useRef({ data, width, marks, onZoom });
  latest.current = { data, width, marks, onZoom };
  const zooms = onZoom !== undefined;
  const { from, to } = span ?? {};
  const shape = JSON.stringify(styles);
  const drawn = width > 0; // there is nothing to draw on before the box has a width
  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` is what `styles` hold
  useEffect(() => {
    const element = box.current;
    if (element === null || !drawn) return;
    const drawing = {
      ...{ width: latest.current.width, height, looks: styles, format, minutes, sync, onCursor },
      span: from === undefined || to === undefined ? undefined : { from, to },
      marks: () => latest.current.marks,
      onZoom: zooms ? (dragged: Span) => latest.current.onZoom?.(dragged) : undefined,
    };
    const made = new uPlot(options(element, drawing), latest.current.data, element);
    plot.current = made;
    return () => {
      plot.current = null;
      made.destroy();
    };
  }, [drawn, shape, height, format, minutes, from, to, zooms, sync, onCursor]);
  useEffect(() => plot.current?.setData(data), [data]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: other marks are another picture
  useEffect(() => plot.current?.redraw(false), [marks]);
  useEffect(() => plot.current?.setSize({ width, height }), [width, height]);
  return <div ref={box} className={classes.plot} style={{ height }} aria-hidden />;
}

function useWidth(box: React.RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (box.current === null) return;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, [box]);
  return width;
}
