import "uplot/dist/uPlot.min.css";
import {
  Group,
  MultiSelect,
  Select,
  Stack,
  Text,
  useComputedColorScheme,
  VisuallyHidden,
} from "@mantine/core";
import { useElementSize, useMergedRef } from "@mantine/hooks";
import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import { extent, looks } from "#/components/chart";
import { count, plural } from "#/components/format";
import { Empty } from "#/components/Page";
import type { QueryResult } from "./api";
import { type ChartKind, type Choice, firstChoice, isNumeric, MOST_BARS, pointsOf } from "./charting";
import classes from "./console.module.css";
import { plotOptions } from "./plot";

const HEIGHT = 320;
const KINDS = [
  { value: "line", label: "Line" },
  { value: "bar", label: "Bars" },
];

/** A result as lines or bars over columns that the reader chooses. */
export default function ResultChart({ result }: { result: QueryResult }) {
  const [choice, setChoice] = useState<Choice | null>(() => firstChoice(result));
  // Another query may have other columns.
  const shape = JSON.stringify(result.columns);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` is what decides
  useEffect(() => setChoice(firstChoice(result)), [shape]);
  if (choice === null || result.rows.length === 0) {
    return (
      <Empty title="Nothing to draw">
        {result.rows.length === 0 ? "The query finds no rows." : "The result has no column with numbers."}
      </Empty>
    );
  }
  const all = result.columns.map(({ name }, at) => ({ value: String(at), label: name }));
  const numbers = all.filter((_, at) => isNumeric(result.columns[at]!.type) && at !== choice.x);
  return (
    <Stack gap="xs">
      <Group gap="xs" align="flex-end">
        <Select
          label="Chart"
          data={KINDS}
          value={choice.kind}
          onChange={(kind) => setChoice({ ...choice, kind: kind as ChartKind })}
          allowDeselect={false}
          w={110}
        />
        <Select
          label="Along the axis"
          data={all}
          value={String(choice.x)}
          onChange={(x) =>
            setChoice({ ...choice, x: Number(x), ys: choice.ys.filter((y) => y !== Number(x)) })
          }
          allowDeselect={false}
          w={200}
        />
        <MultiSelect
          label="Values"
          data={numbers}
          value={choice.ys.map(String)}
          onChange={(ys) => setChoice({ ...choice, ys: ys.map(Number) })}
          maxValues={6}
          miw={240}
        />
      </Group>
      {choice.ys.length > 0 && <Plot result={result} choice={choice} />}
      {choice.kind === "bar" && result.rows.length > MOST_BARS && (
        <Text size="sm" c="dimmed">
          The first {MOST_BARS} of {plural(result.rows.length, "row")}.
        </Text>
      )}
    </Stack>
  );
}

function Plot({ result, choice }: { result: QueryResult; choice: Choice }) {
  const box = useRef<HTMLDivElement>(null);
  const { ref, width } = useElementSize<HTMLDivElement>();
  const merged = useMergedRef(ref, box);
  const scheme = useComputedColorScheme("light");
  const points = useMemo(() => pointsOf(result, choice), [result, choice]);
  const styles = useMemo(() => {
    const named = choice.ys.map((y, at) => ({
      name: String(y),
      label: nameOf(result, y),
      values: points.series[at]!,
    }));
    return looks(named, scheme);
  }, [choice, points, result, scheme]);
  useEffect(() => {
    const element = box.current;
    if (element === null || width === 0) return;
    const options = plotOptions(element, { width, height: HEIGHT, kind: choice.kind, points, styles });
    const plot = new uPlot(options, [points.xs, ...points.series], element);
    return () => plot.destroy();
  }, [width, choice.kind, points, styles]);
  const words = choice.ys.map((y, at) => {
    const found = extent(points.series[at]!);
    return `${nameOf(result, y)}: ${found ? `between ${count(found.min)} and ${count(found.max)}` : "no values"}.`;
  });
  return (
    <figure className={classes.figure} aria-label={`Chart by ${nameOf(result, choice.x)}`}>
      <div ref={merged} style={{ height: HEIGHT }} aria-hidden />
      <Group gap="md" aria-hidden>
        {styles.map(({ label, color }) => (
          <Group key={label} gap={6} wrap="nowrap">
            <span className={classes.swatch} style={{ background: color }} />
            <Text size="xs">{label}</Text>
          </Group>
        ))}
      </Group>
      <VisuallyHidden>{words.join(" ")}</VisuallyHidden>
    </figure>
  );
}

const nameOf = (result: QueryResult, at: number) => result.columns[at]?.name ?? "";
