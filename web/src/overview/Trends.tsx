import { useMemo } from "react";
import { column, useHistory } from "#/api/history";
import { count, rate } from "#/components/format";
import { type ChartSeries, TimeChart } from "#/components/TimeChart";

const MINUTES = 15;

/** Events per second in and out, of all flows together. */
export function RateTrend() {
  return <Trend title="Events per second, last 15 minutes" lines={RATES} format={rate} height={210} />;
}

/** Events that wait for a flow. */
export function LagTrend() {
  return <Trend title="Waiting events" lines={LAG} format={count} />;
}

/** Events that could not be processed, per second. */
export function LettersTrend() {
  return <Trend title="Dead letters per second" lines={LETTERS} format={rate} />;
}

type Line = Omit<ChartSeries, "values">;

const RATES: Line[] = [
  { name: "in_rate", label: "In" },
  { name: "out_rate", label: "Out" },
];
const LAG: Line[] = [{ name: "lag_events", label: "Waiting", color: "grape" }];
const LETTERS: Line[] = [{ name: "dead_letters", label: "Dead letters", color: "red" }];

interface Props {
  title: string;
  lines: Line[];
  format: (value: number) => string;
  height?: number;
}

function Trend({ title, lines, format, height = 130 }: Props) {
  const history = useHistory(null, null, MINUTES);
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
      minutes={MINUTES}
      sync="overview"
    />
  );
}
