import { Group, NumberInput, Paper, Table, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, body } from "#/api/client";
import { usePulse, useStreamPulse } from "#/api/overview";
import { bytes, duration, rate } from "#/components/format";
import { ASSUMED, isComplete, type Limit, limits, type StreamSettings } from "./estimate";

interface Props {
  /** The id of a stream that exists already. */
  id: string | null;
  settings: StreamSettings;
}

/** How much disk the stream will take under a load that one can state, or under its real one. */
export function DiskEstimate({ id, settings }: Props) {
  const real = useReal(id);
  const [givenRate, setRate] = useState<number | string>();
  const [givenSize, setSize] = useState<number | string>();
  const perSecond = Number(givenRate ?? (real.rate ? Math.ceil(real.rate) : 1000));
  const size = Number(givenSize ?? real.stored ?? 500);
  const isReal = real.stored !== null && givenSize === undefined;
  const stored = isReal ? size : size * ASSUMED[settings.wal.compression];
  return (
    <Paper withBorder p="md">
      <Title order={2} size="h5" mb="xs">
        Disk usage estimate
      </Title>
      <Group grow align="flex-start" mb="sm">
        <NumberInput
          label="Events per second"
          min={0}
          thousandSeparator=" "
          value={givenRate ?? perSecond}
          onChange={setRate}
        />
        <NumberInput
          label={isReal ? "Bytes per event on disk" : "Bytes per event"}
          min={0}
          thousandSeparator=" "
          value={givenSize ?? size}
          onChange={setSize}
        />
      </Group>
      <Outcome settings={settings} perSecond={perSecond} stored={stored} />
      <Text size="xs" c="dimmed" mt="xs">
        {isReal
          ? `Measured on this stream: ${real.rate === null ? "" : `${rate(real.rate)} now, `}${bytes(real.stored)} per event on disk.`
          : `Assumed: ${settings.wal.compression === "none" ? "no compression" : `${settings.wal.compression} reduces events to about ${ASSUMED[settings.wal.compression] * 100}% of their size`}; actual events may differ.`}
      </Text>
    </Paper>
  );
}

interface OutcomeProps {
  settings: StreamSettings;
  perSecond: number;
  stored: number;
}

function Outcome({ settings, perSecond, stored }: OutcomeProps) {
  const { overview } = usePulse();
  if (!settings.wal.enabled) {
    return (
      <Text size="sm">
        None: a transient stream holds at most {bytes(settings.buffer.max_bytes)} in memory
        {settings.buffer.spill ? "and spills the rest to disk" : ""}.
      </Text>
    );
  }
  if (!isComplete(settings) || !(perSecond > 0) || !(stored > 0)) {
    return <Text size="sm">Told once there are events and the limits are valid.</Text>;
  }
  const found = limits(settings, perSecond, stored);
  const first = found[0]!;
  const free = overview?.totals.disk_free_bytes;
  return (
    <>
      <Text size="sm" mb="xs" aria-live="polite">
        About <b>{bytes(first.bytes)}</b>, or <b>{duration(first.ms)}</b> of events. The first limit reached
        is <b>{first.name}</b>.
      </Text>
      {free !== undefined && free !== null && first.bytes > free && (
        <Text size="sm" c="red" mb="xs">
          Only {bytes(free)} is free on the server's disk.
        </Text>
      )}
      <Limits found={found} />
    </>
  );
}

function Limits({ found }: { found: Limit[] }) {
  return (
    <Table>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Limit</Table.Th>
          <Table.Th>Keeps</Table.Th>
          <Table.Th>Disk</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {found.map((limit, place) => (
          <Table.Tr key={limit.name} fw={place === 0 ? 600 : undefined}>
            <Table.Td>{limit.name}</Table.Td>
            <Table.Td>{duration(limit.ms)}</Table.Td>
            <Table.Td>{bytes(limit.bytes)}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

/** What an existing stream really does: events per second now, and bytes of an event on disk. */
function useReal(id: string | null): { rate: number | null; stored: number | null } {
  const pulse = useStreamPulse(`Stream/${id}`);
  const { data } = useQuery({
    queryKey: ["below", "streams", id, "stats"],
    queryFn: () => body(api.GET("/streams/{name}/stats", { params: { path: { name: id! } } })),
    enabled: id !== null,
  });
  const stored = data && data.events > 0 ? Math.round(data.bytes / data.events) : null;
  return { rate: pulse?.in_rate ?? null, stored: stored || null };
}
