import { Paper, Progress, SimpleGrid, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";
import type { Pulse } from "#/api/overview";
import { bytes, count, plural, rate } from "#/components/format";
import classes from "./overview.module.css";

/** All flows and streams together in a few numbers, each with the way to where they come from. */
export function Totals({ pulse }: { pulse: Pulse }) {
  const { overview } = pulse;
  if (overview === null) return null;
  const { totals } = overview;
  const workers = overview.workers.filter(({ state }) => state !== "questions"); // which takes no flows
  const ready = workers.filter((worker) => worker.alive && worker.state === "ready").length;
  const slowest = [...pulse.flows.values()].filter((flow) => (flow.lag_events ?? 0) > 0).length;
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} spacing="sm">
      <Tile title="Events in" value={rate(totals.in_rate)} to="/pipelines">
        read by all flows
      </Tile>
      <Tile title="Events out" value={rate(totals.out_rate)} to="/sinks">
        delivered to sinks and streams
      </Tile>
      <Tile title="Waiting" value={count(totals.lag_events)} to="/topology">
        {slowest === 0 ? "every flow is up to date" : `in ${plural(slowest, "flow")}`}
      </Tile>
      <Tile title="Dead letters" value={count(totals.dead_letters)} to="/pipelines?letters=1">
        {totals.dead_letters === 0 ? "every event was processed" : "since the flows were created"}
      </Tile>
      <Disk totals={totals} streams={pulse.streams.size} />
      <Tile title="Workers" value={`${ready} ready`} to="/workers">
        {workers.length === ready ? plural(pulse.flows.size, "flow") : `of ${workers.length}`}
      </Tile>
    </SimpleGrid>
  );
}

type Sums = NonNullable<Pulse["overview"]>["totals"];

function Disk({ totals, streams }: { totals: Sums; streams: number }) {
  const { stream_bytes, disk_free_bytes: free, disk_total_bytes: total } = totals;
  const used = total > 0 ? (100 * (total - free)) / total : 0;
  return (
    <Tile title="Streams on disk" value={bytes(stream_bytes)} to="/streams">
      {plural(streams, "stream")}, {bytes(free)} free
      <Progress
        mt={6}
        size="xs"
        value={used}
        color={used > 95 ? "red" : used > 85 ? "orange" : "penstock"}
        aria-label={`${Math.round(used)} percent of the disk is in use`}
      />
    </Tile>
  );
}

interface TileProps {
  title: string;
  value: string;
  to: string;
  children: ReactNode;
}

function Tile({ title, value, to, children }: TileProps) {
  return (
    <Paper withBorder p="sm" component={Link} to={to} className={classes.tile}>
      <Text size="sm" c="dimmed">
        {title}
      </Text>
      <Text fw={650} size="xl" className={classes.numbers}>
        {value}
      </Text>
      <Text size="xs" c="dimmed" component="div">
        {children}
      </Text>
    </Paper>
  );
}
