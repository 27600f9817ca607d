import { Anchor, Badge, Group, List, Paper, Stack, Text, Title } from "@mantine/core";
import { useMemo } from "react";
import { Link, useNavigate } from "react-router";
import type { Schemas } from "#/api/client";
import { type AnyDocument, pageOf } from "#/api/kinds";
import { moment } from "#/components/format";
import { Problems } from "#/components/Problems";
import { FieldTable } from "#/testing/FieldTable";
import { StepView } from "#/testing/StepView";
import { changes } from "#/testing/trace";

type Story = Schemas["Story"];

const STATES: Record<Story["sinks"][number]["state"], { text: string; color: string }> = {
  delivered: { text: "delivered", color: "teal" },
  waiting: { text: "waiting", color: "blue" },
  behind: { text: "behind", color: "orange" },
  not_chosen: { text: "not routed", color: "gray" },
  failed: { text: "failed", color: "red" },
  unknown: { text: "unknown", color: "gray" },
};

/** The story of an event: what it was, what each step makes of it, and where it is now. */
export function StoryView({ document, story }: { document: AnyDocument; story: Story }) {
  const navigate = useNavigate();
  const input = useMemo(() => [story.event], [story.event]);
  return (
    <Stack>
      <Problems problems={story.warnings} level="warning" />
      <Paper withBorder p="sm" component="section" aria-label="Event">
        <Text size="sm">
          Event {story.offset} of stream {story.stream}
          {story.time && `, appended ${moment(story.time)}`}; traced with the steps of revision{" "}
          {story.revision}.
        </Text>
        <FieldTable
          fields={changes(null, story.event)}
          before={null}
          after="Value"
          label="Fields of the event"
        />
        <Beside event={story.event} />
      </Paper>
      <Problems
        problems={story.errors}
        title="The trace stopped early"
        onPick={(path) =>
          navigate(`${pageOf(document.kind, document.id)}/edit?at=${encodeURIComponent(path)}`)
        }
      />
      {story.steps.length > 0 && <StepView steps={story.steps} input={input} first={story.offset} />}
      <Stack gap="xs" component="section" aria-label="Sinks">
        <Title order={2} size="h4">
          Delivery
        </Title>
        {story.sinks.map((sink) => (
          <Group key={sink.id} gap="xs" align="flex-start" wrap="nowrap">
            <Badge color={STATES[sink.state].color} variant="light" tt="none" miw={90} mt={1}>
              {STATES[sink.state].text}
            </Badge>
            <Text size="sm" style={{ overflowWrap: "anywhere" }}>
              <b>{sink.id}</b> ({sink.type}): {sink.why}
            </Text>
          </Group>
        ))}
      </Stack>
      {story.letters.length > 0 && <Letters letters={story.letters} />}
    </Stack>
  );
}

/** Key and headers of the event, if it has any. */
function Beside({ event }: { event: Story["event"] }) {
  const { key, headers } = (event.$meta ?? {}) as { key?: unknown; headers?: object };
  if (key === undefined && !headers) return null;
  return (
    <Text size="xs" c="dimmed" mt={4} style={{ overflowWrap: "anywhere" }}>
      {key !== undefined && `key ${JSON.stringify(key)} `}
      {headers && `headers ${JSON.stringify(headers)}`}
    </Text>
  );
}

function Letters({ letters }: { letters: Story["letters"] }) {
  return (
    <section aria-label="Dead letters">
      <Title order={2} size="h4">
        Dead letters
      </Title>
      <List size="sm">
        {letters.map((each) => (
          <List.Item key={each.offset}>
            <Anchor component={Link} to={`?tab=letters&letter=${each.offset}`} size="sm" underline="always">
              letter {each.offset}
            </Anchor>{" "}
            ({each.state}) of {each.step}: {each.reason} ({each.code})
          </List.Item>
        ))}
      </List>
    </section>
  );
}
