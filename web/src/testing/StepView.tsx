import { Badge, Button, Group, Paper, Select, Stack, Switch, Text } from "@mantine/core";
import { IconArrowRight } from "@tabler/icons-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { duration, plural } from "#/components/format";
import { PassageView } from "./PassageView";
import { StepLogs } from "./StepLogs";
import { type Passage, type StepResult, type TracedStep, trace } from "./trace";

const SHOWN = 20;

interface Props {
  steps: readonly StepResult[];
  /** The events that the first step was given. */
  input: readonly unknown[];
  /** What the first event is called, and the others after it: the offset, if they are of a stream. */
  first?: number;
  /** The id of the step to bring into view; that of a task stands for its steps. */
  selected?: string;
}

/** What each step made of each event: its output beside its input, with what changed marked. */
export function StepView({ steps, input, first = 0, selected }: Props) {
  const traced = useMemo(() => trace(steps, input), [steps, input]);
  const [chosen, setChosen] = useState<string | null>(null);
  const [onlyChanges, setOnlyChanges] = useState(false);
  const number = chosen === null ? null : Number(chosen);
  return (
    <Stack gap="sm">
      <Group gap="md">
        {input.length > 1 && (
          <Select
            size="xs"
            w={150}
            aria-label="Follow one event"
            placeholder="All events"
            clearable
            searchable
            value={chosen}
            onChange={setChosen}
            data={input.map((_, place) => ({ value: String(place), label: `Event ${first + place}` }))}
            limit={100}
          />
        )}
        <Switch
          size="xs"
          label="Only changed fields"
          checked={onlyChanges}
          onChange={(event) => setOnlyChanges(event.currentTarget.checked)}
        />
      </Group>
      {traced.map((each, place) => (
        <StepCard
          key={each.step.id}
          traced={each}
          place={place + 1}
          number={number}
          first={first}
          onlyChanges={onlyChanges}
          isSelected={selected !== undefined && `${each.step.id}.`.startsWith(`${selected}.`)}
        />
      ))}
    </Stack>
  );
}

interface CardProps {
  traced: TracedStep;
  place: number;
  number: number | null;
  first: number;
  onlyChanges: boolean;
  isSelected: boolean;
}

function StepCard({ traced: { step, passages }, place, number, first, onlyChanges, isSelected }: CardProps) {
  const card = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isSelected) card.current?.scrollIntoView({ block: "nearest" });
  }, [isSelected]);
  const [shown, setShown] = useState(SHOWN);
  const wanted = number === null ? passages : passages.filter((each) => each.number === number);
  const few = wanted.length <= 3;
  return (
    <Paper
      ref={card}
      withBorder
      p="sm"
      component="section"
      aria-label={`Step ${step.id}`}
      style={isSelected ? { borderColor: "var(--mantine-primary-color-filled)" } : undefined}
    >
      <Stack gap="xs">
        <Group justify="space-between" gap="xs">
          <Group gap="xs">
            <Text fw={650}>
              {place}. {step.id}
            </Text>
            <Badge variant="default" tt="none">
              {step.type}
            </Badge>
          </Group>
          <Counts step={step} passages={passages} />
        </Group>
        {wanted.length === 0 && (
          <Text size="sm" c="dimmed">
            {number === null ? "No events reached this step." : "This event did not reach this step."}
          </Text>
        )}
        {wanted.slice(0, shown).map((each, index) => (
          <PassageView
            // biome-ignore lint/suspicious/noArrayIndexKey: passages have no name, and never move
            key={index}
            passage={each}
            name={each.number === null ? "New event" : `Event ${first + each.number}`}
            type={step.type}
            opened={few || index === 0}
            onlyChanges={onlyChanges}
          />
        ))}
        {wanted.length > shown && (
          <Button variant="subtle" size="xs" onClick={() => setShown(shown + 100)}>
            Show more of {plural(wanted.length, "event")}
          </Button>
        )}
        <StepLogs lines={step.logs} />
      </Stack>
    </Paper>
  );
}

function Counts({ step, passages }: { step: StepResult; passages: readonly Passage[] }) {
  const came = passages.filter((each) => each.before !== null).length;
  return (
    <Group gap={6} c="dimmed">
      <Text size="xs">{came} in</Text>
      <IconArrowRight size={12} aria-hidden />
      <Text size="xs">{step.output.length} out</Text>
      {step.dropped > 0 && <Text size="xs">· {step.dropped} dropped</Text>}
      {step.errors.length > 0 && (
        <Text size="xs" c="var(--mantine-color-error)">
          · {step.errors.length} failed
        </Text>
      )}
      {step.late.length > 0 && <Text size="xs">· {step.late.length} late</Text>}
      <Text size="xs">· {duration(step.ms)}</Text>
    </Group>
  );
}
