import { Group, Paper, SegmentedControl, SimpleGrid, Stack, Title } from "@mantine/core";
import { useMemo, useState } from "react";
import { column, type History, useHistory } from "#/api/history";
import type { Kind } from "#/api/kinds";
import { count, duration, rate } from "#/components/format";
import { type ChartSeries, TimeChart } from "#/components/TimeChart";

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

const SPANS = [
  { value: "15", label: "15 min" },
  { value: "60", label: "1 h" },
  { value: "1440", label: "24 h" },
];

/** The numbers of a flow over time. */
export function FlowCharts({ kind, id }: { kind: Kind; id: string }) {
  const [span, setSpan] = useState("15");
  const history = useHistory(kind.place, id, Number(span));
  return (
    <Stack gap="xs" component="section" aria-label="Over time">
      <Group justify="space-between">
        <Title order={2} size="h4">
          Over time
        </Title>
        <SegmentedControl size="xs" aria-label="Time range" data={SPANS} value={span} onChange={setSpan} />
      </Group>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        {CHARTS.map((chart) => (
          <Paper key={chart.title} withBorder p="sm" miw={0}>
            <OneChart chart={chart} history={history} minutes={Number(span)} />
          </Paper>
        ))}
      </SimpleGrid>
    </Stack>
  );
}

function OneChart({ chart, history, minutes }: { chart: Chart; history: History; minutes: number }) {
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
      minutes={minutes}
      sync="flow"
      empty={history.at.length > 0 ? empty : undefined}
    />
  );
}
