import { Alert, Anchor, Group, List, Paper, SimpleGrid, Stack, Table, Text, Title } from "@mantine/core";
import { IconAlertTriangle, IconCheck } from "@tabler/icons-react";
import { useState } from "react";
import { Link } from "react-router";
import { column, useHistory } from "#/api/history";
import { KINDS } from "#/api/kinds";
import type { StreamPulse } from "#/api/overview";
import { ago, bytes, count, duration, plural, rate } from "#/components/format";
import { RangePicker } from "#/components/RangePicker";
import { TimeChart } from "#/components/TimeChart";
import { axisOf, type TimeRange } from "#/components/timeRange";
import { WideTable } from "#/components/WideTable";
import type { Stats } from "./api";
import { dropsOf, dropTitle } from "./drops";
import type { User } from "./users";

interface Props {
  id: string;
  stats: Stats;
  pulse: StreamPulse | undefined;
  writers: readonly User[];
  readers: readonly User[];
}

/** The stream in numbers: now, over time, what was lost, and who uses it. */
export function OverviewTab({ id, stats, pulse, writers, readers }: Props) {
  return (
    <Stack>
      {stats.buffer.full && (
        <Alert color="orange" icon={<IconAlertTriangle />} title="Producers are blocked">
          The stream is full: {stats.buffer.full}. Check the slowest reader, or raise the limits of the
          stream.
        </Alert>
      )}
      <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} spacing="sm">
        <Figure label="In" value={rate(pulse?.in_rate ?? 0)} />
        <Figure
          label="Events"
          value={count(stats.events)}
          about={
            stats.events > 0 ? `offsets ${stats.first} to ${stats.next - 1}` : `next offset ${stats.next}`
          }
        />
        <Figure
          label={stats.transient ? "In memory" : "On disk"}
          value={bytes(stats.bytes)}
          about={plural(stats.segments, "segment")}
        />
        <Figure
          label="Largest lag"
          value={count(Math.max(0, ...stats.readers.map((each) => each.lag_events)))}
          about={plural(stats.readers.length, "reader")}
        />
        <Figure label="Oldest" value={duration(stats.oldest_age_ms)} about="since it was appended" />
        <Figure label="Newest" value={stats.newest ? ago(stats.newest) : "none"} about="appended" />
      </SimpleGrid>
      <Charts id={id} />
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Users
          title="Writers"
          users={writers}
          none="No document writes to this stream. HTTP clients can write at any time."
        />
        <Users title="Readers" users={readers} none="No document reads this stream yet." />
      </SimpleGrid>
      <Drops stats={stats} />
    </Stack>
  );
}

function Figure({ label, value, about }: { label: string; value: string; about?: string }) {
  return (
    <Paper withBorder p="sm">
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      <Text size="xl" fw={650}>
        {value}
      </Text>
      <Text size="xs" c="dimmed">
        {about ?? " "}
      </Text>
    </Paper>
  );
}

function Charts({ id }: { id: string }) {
  const [range, setRange] = useState<TimeRange>({ minutes: 15 });
  const history = useHistory("streams", id, range);
  const drops = Object.keys(history.series)
    .filter((name) => name.startsWith("drop:") && history.series[name]!.some(Boolean))
    .map((name) => ({ name, label: dropTitle(name.slice(5)), values: history.series[name]! }));
  const chart = (title: string, name: string, label: string, format: (value: number) => string) => (
    <TimeChart
      title={title}
      at={history.at}
      series={[{ name, label, values: column(history, name) }]}
      format={format}
      {...axisOf(range)}
      onZoom={setRange}
      sync={`stream ${id}`}
      height={140}
    />
  );
  return (
    <Stack gap="xs">
      <Group justify="flex-end">
        <RangePicker range={range} onChange={setRange} />
      </Group>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        {chart("Events appended", "in_rate", "in", rate)}
        {chart("Lag of the slowest reader", "lag_events", "events", count)}
        {chart("Size", "bytes", "bytes", bytes)}
        {chart("Segments", "segments", "segments", count)}
        {drops.length > 0 && (
          <TimeChart
            title="Dropped and removed"
            at={history.at}
            series={drops}
            format={rate}
            {...axisOf(range)}
            onZoom={setRange}
            sync={`stream ${id}`}
            height={140}
          />
        )}
      </SimpleGrid>
    </Stack>
  );
}

function Users({ title, users, none }: { title: string; users: readonly User[]; none: string }) {
  return (
    <div>
      <Title order={2} size="h5" mb={4}>
        {title}
      </Title>
      {users.length === 0 ? (
        <Text size="sm" c="dimmed">
          {none}
        </Text>
      ) : (
        <List size="sm">
          {users.map(({ kind, page, name, does }) => (
            <List.Item key={`${page} ${does}`}>
              {KINDS[kind].one}{" "}
              <Anchor component={Link} to={page} size="sm">
                {name}
              </Anchor>{" "}
              {does}
            </List.Item>
          ))}
        </List>
      )}
    </div>
  );
}

function Drops({ stats }: { stats: Stats }) {
  const drops = dropsOf(stats.counters);
  return (
    <div>
      <Title order={2} size="h5" mb={4}>
        Dropped, removed and quarantined events
      </Title>
      {drops.length === 0 ? (
        <Text size="sm" c="dimmed">
          <IconCheck size={14} aria-hidden /> None: every acknowledged event is still in the stream.
        </Text>
      ) : (
        <WideTable least={480} fz="sm" aria-label="Dropped, removed and quarantined events">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Reason</Table.Th>
              <Table.Th ta="right">Events</Table.Th>
              <Table.Th>Explanation</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {drops.map(({ reason, title, about, events, isLoss }) => (
              <Table.Tr key={reason}>
                <Table.Td fw={isLoss ? 600 : undefined}>{title}</Table.Td>
                <Table.Td ta="right" data-label="Events">
                  {count(events)}
                </Table.Td>
                <Table.Td data-line>{about}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </WideTable>
      )}
    </div>
  );
}
