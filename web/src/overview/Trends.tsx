import { useMemo } from "react";
import { column, useHistory } from "#/api/history";
import { count, rate } from "#/components/format";
import { type ChartSeries, TimeChart } from "#/components/TimeChart";
import { axisOf, type TimeRange } from "#/components/timeRange";

interface Times {
  range: TimeRange;
  onRange: (range: TimeRange) => void;
}

/** Events per second in and out, of all flows together. */
export function RateTrend(times: Times) {
  return <Trend title="Events per second" lines={RATES} format={rate} height={210} {...times} />;
}

/** Events that wait for a flow. */
export function LagTrend(times: Times) {
  return <Trend title="Waiting events" lines={LAG} format={count} {...times} />;
}

/** Events that could not be processed, per second. */
export function LettersTrend(times: Times) {
  return <Trend title="Dead letters per second" lines={LETTERS} format={rate} {...times} />;
}

type Line = Omit<ChartSeries, "values">;

const RATES: Line[] = [
  { name: "in_rate", label: "In" },
  { name: "out_rate", label: "Out" },
];
const LAG: Line[] = [{ name: "lag_events", label: "Waiting", color: "grape" }];
const LETTERS: Line[] = [{ name: "dead_letters", label: "Dead letters", color: "red" }];

interface Props extends Times {
  title: string;
  lines: Line[];
  format: (value: number) => string;
  height?: number;
}

function Trend({ title, lines, format, height = 130, range, onRange }: Props) {
  const history = useHistory(null, null, range);
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
      height={height}
      {...axisOf(range)}
      onZoom={onRange}
      sync="overview"
    />
  );
}
