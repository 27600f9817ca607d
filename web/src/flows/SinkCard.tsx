import { Badge, Button, Group, List, Paper, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Allowed } from "#/access/Allowed";
import { api, body } from "#/api/client";
import type { Kind } from "#/api/kinds";
import { ago, count, moment, plural } from "#/components/format";
import { done, failed } from "#/components/notify";
import { below, belowKey, type SinkInfo } from "./api";

const STATES: Record<SinkInfo["state"], { text: string; color: string; about: string }> = {
  in_sync: { text: "in sync", color: "teal", about: "Receives every batch." },
  failing: {
    text: "failing",
    color: "red",
    about: "The sink rejected the current batch. It is retried automatically.",
  },
  behind: {
    text: "behind",
    color: "orange",
    about: "The sink missed batches. They are kept and retried automatically.",
  },
  catching_up: { text: "catching up", color: "blue", about: "Delivering the missed batches." },
};

const KEPT: Record<SinkInfo["gaps"][number]["kept"], string> = {
  stream: "kept in the stream and read again from there",
  file: "kept in a file next to the checkpoint",
  lost: "lost",
};

interface Props {
  kind: Kind;
  id: string;
  sink: SinkInfo;
}

/** A sink of a flow: how far it has come, what it has missed, and a way to let it catch up. */
export function SinkCard({ kind, id, sink }: Props) {
  const state = STATES[sink.state];
  return (
    <Paper withBorder p="sm" component="section" aria-label={`Sink ${sink.id}`}>
      <Stack gap="xs">
        <Group justify="space-between" gap="xs">
          <Group gap="xs">
            <Text fw={600}>{sink.id}</Text>
            <Text size="sm" c="dimmed">
              {sink.type}, {sink.path}
            </Text>
          </Group>
          <Badge color={state.color} variant="light" tt="none">
            {state.text}
          </Badge>
        </Group>
        <Text size="xs" c="dimmed">
          {sink.guarantee},{" "}
          {sink.required
            ? "required: batches wait for this sink"
            : "best effort: batches don't wait for this sink"}
          . {state.about}
        </Text>
        <Facts sink={sink} />
        {sink.last_error && (
          <Text size="sm" c="var(--mantine-color-error)" style={{ overflowWrap: "anywhere" }}>
            Last error at {sink.last_error}
          </Text>
        )}
        {sink.gaps.length > 0 && <Gaps gaps={sink.gaps} />}
        {(sink.state === "behind" || sink.state === "catching_up") && (
          <Allowed needs="operator">
            <CatchUp kind={kind} id={id} sink={sink} />
          </Allowed>
        )}
      </Stack>
    </Paper>
  );
}

function Facts({ sink }: { sink: SinkInfo }) {
  const facts: [string, string][] = [
    ["Cursor", sink.cursor === null ? "–" : `offset ${sink.cursor}`],
    ["Lag", sink.lag === null ? "unknown" : plural(sink.lag, "event")],
    ["Failures", count(sink.failures)],
    ["Last delivery", ago(sink.last_ack_at)],
  ];
  return (
    <Group gap="lg" component="dl" m={0}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <Text size="xs" c="dimmed" component="dt">
            {name}
          </Text>
          <Text size="sm" component="dd" m={0}>
            {value}
          </Text>
        </div>
      ))}
    </Group>
  );
}

function Gaps({ gaps }: { gaps: SinkInfo["gaps"] }) {
  return (
    <div>
      <Text size="sm" fw={600}>
        Missed batches
      </Text>
      <List size="xs">
        {gaps.slice(0, 20).map((gap) => (
          <List.Item key={`${gap.first} ${gap.since} ${gap.kept}`}>
            {gap.first === null ? "" : `offsets ${gap.first} to ${(gap.next ?? gap.first + 1) - 1}, `}
            {plural(gap.batches, "batch")}
            {gap.events === null ? "" : `, ${plural(gap.events, "event")}`}, since {moment(gap.since)}:{" "}
            {KEPT[gap.kept]}
            {gap.why ? `, because ${gap.why}` : ""}
          </List.Item>
        ))}
      </List>
      {gaps.length > 20 && (
        <Text size="xs" c="dimmed">
          and {gaps.length - 20} more
        </Text>
      )}
    </div>
  );
}

function CatchUp({ kind, id, sink }: Props) {
  const queries = useQueryClient();
  const ask = useMutation({
    mutationFn: () =>
      body(
        api.POST(below(kind, "/pipelines/{name}/sinks/{sink}/catch-up"), {
          params: { path: { name: id, sink: sink.id } },
        }),
      ),
    onSuccess: () => {
      done(`Retrying sink ${sink.id} now.`);
      void queries.invalidateQueries({ queryKey: belowKey(kind, id, "sinks") });
    },
    onError: (error) => failed(`Could not start catching up sink ${sink.id}`, error),
  });
  return (
    <Button
      size="xs"
      variant="light"
      loading={ask.isPending}
      disabled={sink.state === "catching_up"}
      onClick={() => ask.mutate()}
    >
      {sink.state === "catching_up" ? "Catching up" : "Catch up now"}
    </Button>
  );
}
