import { Anchor, Button, Code, Stack, Table, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { Link } from "react-router";
import { pageOfKey } from "#/api/kinds";
import type { StreamPulse } from "#/api/overview";
import { useAllowed } from "#/api/session";
import { ago, count, duration, rate } from "#/components/format";
import { done, failed } from "#/components/notify";
import { Empty } from "#/components/Page";
import { type Reader, type Stats, useForget } from "./api";

interface Props {
  id: string;
  stats: Stats;
  pulse: StreamPulse | undefined;
}

/** Who reads the stream, and how far each is. */
export function ReadersTab({ id, stats, pulse }: Props) {
  const mayForget = useAllowed("operator");
  const live = new Map(pulse?.readers.map((each) => [each.reader, each]));
  if (stats.readers.length === 0) {
    return (
      <Empty title="Nobody reads it yet">
        A pipeline with this stream as its source, a task with it as its input or a sink that subscribes to it
        becomes a reader. The stream keeps events for as long as its retention says, read or not.
      </Empty>
    );
  }
  return (
    <Table.ScrollContainer minWidth={720}>
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Reader</Table.Th>
            <Table.Th ta="right">Next offset</Table.Th>
            <Table.Th ta="right">Lag</Table.Th>
            <Table.Th ta="right">Waits for</Table.Th>
            <Table.Th ta="right">Rate</Table.Th>
            <Table.Th ta="right">Could not get</Table.Th>
            <Table.Th>Moved</Table.Th>
            <Table.Th />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {stats.readers.map((reader) => {
            const found = live.get(reader.reader);
            return (
              <Table.Tr key={reader.reader}>
                <Table.Td>
                  <Name reader={reader.reader} owner={found?.key ?? null} />
                </Table.Td>
                <Table.Td ta="right">{reader.cursor}</Table.Td>
                <Table.Td ta="right">{count(reader.lag_events)} events</Table.Td>
                <Table.Td ta="right">{reader.lag_ms === null ? "–" : duration(reader.lag_ms)}</Table.Td>
                <Table.Td ta="right">{rate(found?.rate)}</Table.Td>
                <Table.Td ta="right">{count(reader.skipped)}</Table.Td>
                <Table.Td>{ago(reader.updated)}</Table.Td>
                <Table.Td>{mayForget && !found?.key && <Forget id={id} reader={reader} />}</Table.Td>
              </Table.Tr>
            );
          })}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function Name({ reader, owner }: { reader: string; owner: string | null }) {
  if (owner === null) {
    return (
      <Stack gap={0}>
        <Code>{reader}</Code>
        <Text size="xs" c="dimmed">
          Its flow is gone, or has begun anew
        </Text>
      </Stack>
    );
  }
  const [kind, ...rest] = owner.split("/");
  return (
    <Text size="sm">
      {kind?.toLowerCase()}{" "}
      <Anchor component={Link} to={pageOfKey(owner)} size="sm">
        {rest.join("/")}
      </Anchor>
    </Text>
  );
}

function Forget({ id, reader }: { id: string; reader: Reader }) {
  const forget = useForget(id);
  const ask = () =>
    modals.openConfirmModal({
      title: `Forget ${reader.reader}?`,
      children: (
        <Text size="sm">
          Its place is removed, and nothing is kept for it any more. If it comes back it begins as its
          document says.
        </Text>
      ),
      labels: { confirm: "Forget it", cancel: "Keep it" },
      confirmProps: { color: "red" },
      onConfirm: () =>
        forget.mutate(reader.reader, {
          onSuccess: () => done("The reader is forgotten."),
          onError: (error) => failed("It is not forgotten", error),
        }),
    });
  return (
    <Button size="compact-sm" variant="subtle" color="red" onClick={ask} loading={forget.isPending}>
      Forget
    </Button>
  );
}
