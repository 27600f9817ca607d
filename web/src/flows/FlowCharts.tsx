import { Group, Paper, SimpleGrid, Stack, Title } from "@mantine/core";
import { useMemo, useState } from "react";
import { column, type History, useHistory } from "#/api/history";
import type { AnyDocument, Kind } from "#/api/kinds";
import { count, duration, rate } from "#/components/format";
import { RangePicker } from "#/components/RangePicker";
import { type ChartMark, type ChartSeries, NONE_THEN, TimeChart } from "#/components/TimeChart";
import { axisOf, isSpan, type TimeRange } from "#/components/timeRange";
import { useRevisions } from "./revisions/api";

type Line = Omit<ChartSeries, "values">;

interface Chart {
  title: string;
  lines: Line[];
  format: (value: number) => string;
  empty?: string;
}

const CHARTS: Chart[] = [
  {
    title: "Events per second",
    lines: [
      { name: "in_rate", label: "In" },
      { name: "out_rate", label: "Out" },
    ],
    format: rate,
  },
  { title: "Latency", lines: [{ name: "latency_ms", label: "Oldest event of a batch" }], format: duration },
  { title: "Batch time", lines: [{ name: "batch_ms", label: "Batch" }], format: duration },
  {
    title: "Waiting events",
    lines: [{ name: "lag_events", label: "Waiting" }],
    format: count,
    empty: "Backlog isn't available for this source type.",
  },
];

/** The numbers of a flow over time; lines mark when revisions were deployed. */
export function FlowCharts({ kind, document }: { kind: Kind; document: AnyDocument }) {
  const [range, setRange] = useState<TimeRange>({ minutes: 15 });
  const history = useHistory(kind.place, document.id, range);
  const { data: revisions } = useRevisions(kind, document);
  const isFresh = !document.ops?.input_events;
  const begin = isSpan(range) ? range.from : (history.at.at(-1) ?? 0) - range.minutes * 60_000;
  const marks = useMemo(
    () =>
      (revisions ?? [])
        .map(({ revision, created_at }) => ({
          at: new Date(created_at).getTime(),
          label: `Revision ${revision}`,
        }))
        .filter(({ at }) => at >= begin),
    [revisions, begin],
  );
  return (
    <Stack gap="xs" component="section" aria-label="Over time">
      <Group justify="space-between">
        <Title order={2} size="h4">
          Over time
        </Title>
        <RangePicker range={range} onChange={setRange} />
      </Group>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        {CHARTS.map((chart) => (
          <Paper key={chart.title} withBorder p="sm" miw={0}>
            <OneChart {...{ chart, history, range, marks, isFresh }} onRange={setRange} />
          </Paper>
        ))}
      </SimpleGrid>
    </Stack>
  );
}

interface OneChartProps {
  chart: Chart;
  history: History;
  range: TimeRange;
  marks: readonly ChartMark[];
  /** Whether it has not read an event yet. */
  isFresh: boolean;
  onRange: (range: TimeRange) => void;
}

function OneChart({ chart, history, range, marks, isFresh, onRange }: OneChartProps) {
  const { title, lines, format, empty } = chart;
  const series = useMemo(
    () => lines.map((line) => ({ ...line, values: column(history, line.name) })),
    [lines, history],
  );
  return (
    <TimeChart
      title={title}
      at={history.at}
      series={series}
      format={format}
      height={140}
      {...axisOf(range)}
      marks={marks}
      onZoom={onRange}
      sync="flow"
      empty={(history.at.length > 0 && empty) || (isFresh ? undefined : NONE_THEN)}
    />
  );
}
