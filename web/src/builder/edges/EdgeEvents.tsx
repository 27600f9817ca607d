import { Button, CloseButton, Code, Group, ScrollArea, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { api, body, problemsOf, type Schemas } from "#/api/client";
import { Problems } from "#/components/Problems";
import type { Tested } from "#/testing/cases";
import { EventTable } from "#/testing/EventTable";
import { streamOf, testable } from "#/testing/testable";
import type { Event } from "#/testing/trace";
import { useBuilder } from "../context";
import type { Spot } from "./passing";

interface Props {
  spot: Spot;
  columns: readonly { name: string; type: string }[];
  events: readonly Event[] | undefined;
  onClose: () => void;
}

const LAST = 20;

/** The events that passed an edge in the last test run, and the columns they have. */
export function EdgeEvents({ spot: { after, sink }, columns, events, onClose }: Props) {
  const { place, id, value, showTests, setTested } = useBuilder();
  const [error, setError] = useState<unknown>(null);
  const [isRunning, setRunning] = useState(false);
  // Only a saved flow has read something from its stream.
  const stream = id === null ? null : streamOf(value, place);
  const runOnLast = async () => {
    setRunning(true);
    setError(null);
    try {
      const asked = { document: testable(value, place), events: { stream, last: LAST } };
      setTested((await body(api.POST("/test", { body: asked as Schemas["TestBody"] }))) as Tested);
    } catch (thrown) {
      setError(thrown);
    } finally {
      setRunning(false);
    }
  };
  return (
    <Stack gap="xs" component="section" aria-label={`Events after ${after.id}`}>
      <Group justify="space-between" wrap="nowrap">
        <Text size="sm" fw={650}>
          After {after.id}
          {sink && `, to ${sink.id}`}
        </Text>
        <CloseButton size="sm" aria-label="Close" onClick={onClose} />
      </Group>
      {columns.length > 0 && (
        <Code block fz="xs" style={{ whiteSpace: "pre-wrap" }}>
          {columns.map(({ name, type }) => `${name} ${type}`).join(", ")}
        </Code>
      )}
      {events ? (
        <ScrollArea.Autosize mah={280} viewportProps={{ tabIndex: 0, "aria-label": "Events" }}>
          <EventTable events={events} label={`Events after ${after.id}`} />
        </ScrollArea.Autosize>
      ) : (
        <Text size="sm" c="dimmed">
          A test run shows the events that pass here. Nothing is written.
        </Text>
      )}
      <Problems problems={error === null ? [] : problemsOf(error)} title="The test run was rejected" />
      <Group gap="xs">
        {stream && (
          <Button size="compact-sm" variant="light" loading={isRunning} onClick={runOnLast}>
            Run on the last {LAST} events of {stream}
          </Button>
        )}
        <Button
          size="compact-sm"
          variant="default"
          onClick={() => {
            onClose();
            showTests();
          }}
        >
          Open the test panel
        </Button>
      </Group>
    </Stack>
  );
}
