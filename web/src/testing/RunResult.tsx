import { Badge, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { duration, plural } from "#/components/format";
import { Problems } from "#/components/Problems";
import { finalOf, type Tested } from "./cases";
import { EventTable } from "./EventTable";
import { StepView } from "./StepView";
import { NO_SINK } from "./testable";

interface Props {
  tested: Tested;
  /** The id of the step to bring into view. */
  selected?: string;
  onPick?: (path: string) => void;
}

/** What came of a test run: step by step, and what each sink would get. */
export function RunResult({ tested, selected, onPick }: Props) {
  return (
    <Stack gap="sm">
      <Problems
        problems={tested.errors}
        title={tested.steps.length > 0 ? "The run stopped early" : "The document can't be run"}
        onPick={onPick}
      />
      <Problems problems={tested.warnings} level="warning" onPick={onPick} />
      {(tested.steps.length > 0 || tested.ok) && <Summary tested={tested} />}
      {tested.steps.length > 0 && <StepView steps={tested.steps} input={tested.input} selected={selected} />}
      {tested.ok && <Sinks tested={tested} selected={selected} />}
    </Stack>
  );
}

function Summary({ tested }: { tested: Tested }) {
  const count = (of: (step: Tested["steps"][number]) => number) =>
    tested.steps.reduce((sum, step) => sum + of(step), 0);
  const [dropped, failed, late] = [
    count((step) => step.dropped),
    count((step) => step.errors.length),
    count((step) => step.late.length),
  ];
  return (
    <Group gap={6}>
      <Badge variant="light" color={tested.ok ? (failed > 0 ? "orange" : "teal") : "red"} tt="none">
        {tested.ok ? "finished" : "stopped"}
      </Badge>
      <Text size="sm">
        {plural(tested.input.length, "event")} in, {finalOf(tested).length} out
        {dropped > 0 && `, ${dropped} dropped`}
        {late > 0 && `, ${late} late`}
        {failed > 0 && `, ${failed} failed (dead letters in a live flow)`}
        <Text span c="dimmed">
          {" "}
          · {duration(tested.ms)}
        </Text>
      </Text>
    </Group>
  );
}

function Sinks({ tested, selected }: { tested: Tested; selected?: string }) {
  const sinks = Object.entries(tested.output);
  return (
    <Stack gap="xs" component="section" aria-label="Output by sink">
      <Title order={3} size="h5">
        Output by sink
      </Title>
      {sinks.map(([id, events]) => (
        <Paper
          key={id}
          withBorder
          p="sm"
          component="section"
          aria-label={id === NO_SINK ? "Output of the last step" : `Sink ${id}`}
          style={id === selected ? { borderColor: "var(--mantine-primary-color-filled)" } : undefined}
        >
          <Group justify="space-between" gap="xs" mb={4}>
            <Text fw={650} size="sm">
              {id === NO_SINK ? "No sink yet: output of the last step" : id}
            </Text>
            <Text size="xs" c="dimmed">
              {plural(events.length, "event")}
            </Text>
          </Group>
          <EventTable events={events} label={`Events for ${id}`} />
        </Paper>
      ))}
    </Stack>
  );
}
