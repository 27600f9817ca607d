import { Anchor, Group, Progress, Stack, Text } from "@mantine/core";
import { Link } from "react-router";
import { type Kind, pageOf } from "#/api/kinds";
import { ago, count, plural } from "#/components/format";
import { StatusBadge } from "#/components/StatusBadge";
import { type Replay, useReplays } from "./api";

/** The replays of a flow, and how far each is. Nothing if there are none. */
export function ReplayList({ kind, id }: { kind: Kind; id: string }) {
  const { data } = useReplays(kind, id);
  if (!data || data.length === 0) return null;
  return (
    <Stack gap="sm" component="section" aria-label="Replays">
      <Text fw={600} size="sm">
        Replays
      </Text>
      {data.map((replay) => (
        <OneReplay key={replay.id} replay={replay} />
      ))}
    </Stack>
  );
}

function OneReplay({ replay }: { replay: Replay }) {
  return (
    <Stack gap={4}>
      <Group justify="space-between" gap="xs">
        <Group gap="xs">
          <Anchor component={Link} to={pageOf("Pipeline", replay.id)} size="sm">
            {replay.name}
          </Anchor>
          <StatusBadge status={replay.status} phase={replay.phase} />
        </Group>
        <Text size="xs" c="dimmed">
          {count(replay.delivered)} of {plural(replay.total, "event")} · started {ago(replay.created_at)}
        </Text>
      </Group>
      <Progress
        value={replay.percent}
        color={replay.status === "failed" ? "red" : undefined}
        aria-label={`${replay.name}: ${replay.percent} %`}
      />
      {replay.error && (
        <Text size="xs" c="var(--mantine-color-error)">
          {replay.error.message}
        </Text>
      )}
    </Stack>
  );
}
