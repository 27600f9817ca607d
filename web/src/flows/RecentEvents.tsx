import { Anchor, Button, Group, Stack, Table, Text, TextInput, Title } from "@mantine/core";
import { IconRefresh, IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import { moment } from "#/components/format";
import { Failure } from "#/components/Problems";
import { WideTable } from "#/components/WideTable";
import { type StreamEvent, useEvents } from "#/streams/api";

const LAST = 50;

interface Props {
  stream: string;
  /** Without it events are shown only. */
  onPick?: (offset: number) => void;
}

/** What an event holds, as one line. */
function contentOf({ columns, value }: StreamEvent): string {
  const content = columns ?? value;
  return typeof content === "string" ? content : JSON.stringify(content);
}

/** The last events of a stream, newest first, to pick one from. */
export function RecentEvents({ stream, onPick }: Props) {
  const [text, setText] = useState("");
  const { data, error, refetch, isFetching } = useEvents(stream, { last: LAST, limit: LAST });
  const wanted = text.trim().toLowerCase();
  const events = ((data?.events ?? []) as StreamEvent[])
    .map((event) => ({ event, text: contentOf(event) }))
    .filter((each) => each.text.toLowerCase().includes(wanted))
    .toReversed();
  return (
    <Stack gap="xs" component="section" aria-label="Recent events">
      <Group justify="space-between" align="flex-end">
        <Title order={2} size="h5">
          Recent events of {stream}
        </Title>
        <Group gap="xs">
          <TextInput
            aria-label="Find in recent events"
            placeholder="text in an event"
            size="xs"
            leftSection={<IconSearch size={14} aria-hidden />}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
          />
          <Button
            size="xs"
            variant="default"
            leftSection={<IconRefresh size={14} aria-hidden />}
            loading={isFetching}
            onClick={() => void refetch()}
          >
            Refresh
          </Button>
        </Group>
      </Group>
      <Failure error={error} title="Could not read the events" />
      {data && events.length === 0 && (
        <Text size="sm" c="dimmed">
          {data.events.length === 0 ? "The stream has no events." : "No matching events."}
        </Text>
      )}
      {events.length > 0 && (
        <WideTable least={520} mah={360} verticalSpacing={4} highlightOnHover aria-label="Recent events">
          <Table.Thead>
            <Table.Tr>
              <Table.Th w={90}>Offset</Table.Th>
              <Table.Th w={170}>Appended at</Table.Th>
              <Table.Th>Event</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {events.map(({ event, text: content }) => (
              <Table.Tr key={event.offset}>
                <Table.Td>
                  {onPick ? (
                    <Anchor
                      component="button"
                      type="button"
                      size="sm"
                      aria-label={`Trace event ${event.offset}`}
                      onClick={() => onPick(event.offset)}
                    >
                      {event.offset}
                    </Anchor>
                  ) : (
                    event.offset
                  )}
                </Table.Td>
                <Table.Td>
                  <Text size="xs" style={{ whiteSpace: "nowrap" }}>
                    {moment(event.time)}
                  </Text>
                </Table.Td>
                <Table.Td maw={480} data-line>
                  <Text size="xs" ff="monospace" truncate title={content}>
                    {content}
                  </Text>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </WideTable>
      )}
    </Stack>
  );
}
