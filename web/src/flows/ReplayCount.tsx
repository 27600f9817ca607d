import { Badge, Group, Loader, Paper, Stack, Text } from "@mantine/core";
import type { Schemas } from "#/api/client";
import { bytes, moment, plural } from "#/components/format";
import { Problems } from "#/components/Problems";

interface Props {
  answer: Schemas["ReplayAnswer"] | undefined;
  counting: boolean;
}

/** What a replay would do: how many events, of when, and who gets them. */
export function ReplayCount({ answer, counting }: Props) {
  if (counting) {
    return (
      <Group gap="xs" role="status">
        <Loader size="xs" />
        <Text size="sm">Counting the events</Text>
      </Group>
    );
  }
  if (!answer) return null;
  const { range, sinks, warnings } = answer;
  return (
    <Paper withBorder p="sm" role="status">
      <Stack gap={6}>
        <Text size="sm">
          <b>{plural(range.events, "event")}</b>, about {bytes(range.bytes)}: offsets {range.first} to{" "}
          {range.next - 1} of stream {range.stream}
        </Text>
        <Text size="xs" c="dimmed">
          appended {moment(range.first_time)} to {moment(range.last_time)}
        </Text>
        {sinks.map((sink) => (
          <Group key={sink.id} gap="xs">
            <Text size="sm">
              {sink.id} ({sink.type}, {sink.guarantee})
            </Text>
            {sink.again && (
              <Badge color="orange" variant="light" tt="none">
                receives these events again
              </Badge>
            )}
          </Group>
        ))}
        <Problems problems={warnings} level="warning" />
      </Stack>
    </Paper>
  );
}
