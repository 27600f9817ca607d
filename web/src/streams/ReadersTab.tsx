import { Anchor, Button, Code, Stack, Table, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { useState } from "react";
import { Link } from "react-router";
import { pageOfKey } from "#/api/kinds";
import type { StreamPulse } from "#/api/overview";
import { useAllowed } from "#/api/session";
import { ago, count, duration, plural, rate } from "#/components/format";
import { done, failed } from "#/components/notify";
import { Empty } from "#/components/Page";
import { WideTable } from "#/components/WideTable";
import { type Reader, type Stats, useForget } from "./api";
import { MoveReader } from "./MoveReader";

interface Props {
  id: string;
  stats: Stats;
  pulse: StreamPulse | undefined;
}

/** Who reads the stream, and how far each is. */
export function ReadersTab({ id, stats, pulse }: Props) {
  const mayForget = useAllowed("operator");
  const [moved, setMoved] = useState<string | null>(null);
  const live = new Map(pulse?.readers.map((each) => [each.reader, each]));
  if (stats.readers.length === 0) {
    return (
      <Empty title="No readers yet">
        Pipelines with this stream as source, tasks with it as input and sinks that subscribe to it are
        readers. Events are kept according to the retention of the stream, whether they are read or not.
      </Empty>
    );
  }
  return (
    <>
      {moved !== null && <MoveReader id={id} owner={moved} onClose={() => setMoved(null)} />}
      <WideTable least={720} aria-label="Readers">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Reader</Table.Th>
            <Table.Th ta="right">Next offset</Table.Th>
            <Table.Th ta="right">Lag</Table.Th>
            <Table.Th ta="right">Behind by</Table.Th>
            <Table.Th ta="right">Rate</Table.Th>
            <Table.Th ta="right">Missed</Table.Th>
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
                <Table.Td ta="right" data-label="Next offset">
                  {reader.cursor}
                </Table.Td>
                <Table.Td ta="right" data-label="Lag">
                  {plural(reader.lag_events, "event")}
                </Table.Td>
                <Table.Td ta="right" data-label="Behind by">
                  {reader.lag_ms === null ? "–" : duration(reader.lag_ms)}
                </Table.Td>
                <Table.Td ta="right" data-label="Rate">
                  {rate(found?.rate)}
                </Table.Td>
                <Table.Td ta="right" data-label="Missed">
                  {count(reader.skipped)}
                </Table.Td>
                <Table.Td data-label="Moved">{ago(reader.updated)}</Table.Td>
                <Table.Td>
                  {mayForget && !found?.key && <Forget id={id} reader={reader} />}
                  {mayForget && found?.key && (
                    <Button size="compact-sm" variant="subtle" onClick={() => setMoved(found.key)}>
                      Move position
                    </Button>
                  )}
                </Table.Td>
              </Table.Tr>
            );
          })}
        </Table.Tbody>
      </WideTable>
    </>
  );
}

function Name({ reader, owner }: { reader: string; owner: string | null }) {
  if (owner === null) {
    return (
      <Stack gap={0}>
        <Code>{reader}</Code>
        <Text size="xs" c="dimmed">
          The flow was deleted or reset
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
      closeButtonProps: { "aria-label": "Close" },
      children: (
        <Text size="sm">
          The position of this reader is removed, and events are no longer retained for it. If the reader
          returns, it starts at the position set in its document.
        </Text>
      ),
      labels: { confirm: "Forget", cancel: "Cancel" },
      confirmProps: { color: "red" },
      onConfirm: () =>
        forget.mutate(reader.reader, {
          onSuccess: () => done("Reader forgotten."),
          onError: (error) => failed("Could not forget the reader", error),
        }),
    });
  return (
    <Button size="compact-sm" variant="subtle" color="red" onClick={ask} loading={forget.isPending}>
      Forget
    </Button>
  );
}
