import { Paper, SimpleGrid, Text, Tooltip } from "@mantine/core";
import { type AnyDocument, keyOf } from "#/api/kinds";
import { useFlowPulse } from "#/api/overview";
import { ago, count, duration, plural, rate } from "#/components/format";

interface Figure {
  label: string;
  value: string;
  about: string;
}

/** The numbers of a flow at this moment. */
export function FlowNumbers({ document }: { document: AnyDocument }) {
  const pulse = useFlowPulse(keyOf(document));
  const ops = document.ops;
  const batch = ops?.last_batch as { at?: string; input_events?: number } | null | undefined;
  const goal = ops?.latency;
  const figures: Figure[] = [
    { label: "In", value: rate(pulse?.in_rate), about: "Events read per second, over the last ten seconds" },
    { label: "Out", value: rate(pulse?.out_rate), about: "Events delivered per second" },
    {
      label: "Waiting",
      value: count(pulse?.lag_events),
      about: "Events in the source stream not read yet; unknown if the source is not a stream",
    },
    goal
      ? {
          label: "Latency / goal",
          value: `${duration(goal.p99_ms)} / ${duration(goal.target_ms)}`,
          about: goal.reason ?? "99% of recent events were delivered within this time",
        }
      : {
          label: "Latency",
          value: duration(pulse?.latency_ms),
          about: "Age of the oldest event of the last batch when it was delivered",
        },
    {
      label: "Events read",
      value: count(pulse?.input_events ?? ops?.input_events),
      about: "Total over all runs",
    },
    {
      label: "Last batch",
      value: batch?.at ? ago(batch.at) : "none yet",
      about: batch ? `${plural(batch.input_events, "event")} in ${duration(pulse?.batch_ms)}` : "",
    },
  ];
  return (
    <SimpleGrid cols={{ base: 2, xs: 3, md: 6 }} spacing="sm" component="dl" m={0}>
      {figures.map(({ label, value, about }) => (
        <Tooltip key={label} label={about} disabled={!about}>
          <Paper withBorder px="sm" py="xs">
            <Text size="xs" c="dimmed" component="dt">
              {label}
            </Text>
            <Text fw={650} size="lg" component="dd" m={0} style={{ fontVariantNumeric: "tabular-nums" }}>
              {value}
            </Text>
          </Paper>
        </Tooltip>
      ))}
    </SimpleGrid>
  );
}
