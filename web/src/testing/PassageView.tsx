import { Box, Collapse, Group, Text, UnstyledButton } from "@mantine/core";
import {
  IconAlertTriangle,
  IconArrowRight,
  IconChevronDown,
  IconChevronRight,
  IconClockX,
  IconFilterOff,
  IconSparkles,
  IconStack2,
} from "@tabler/icons-react";
import type { ComponentType } from "react";
import { useId, useState } from "react";
import { FieldTable } from "./FieldTable";
import { changes, type Fate, type FieldChange, META, type Passage, whyDropped } from "./trace";

interface Props {
  passage: Passage;
  /** What the event is called. */
  name: string;
  /** The type of the step. */
  type: string;
  opened: boolean;
  onlyChanges: boolean;
}

const ICONS: Record<Fate, ComponentType<{ size?: number; stroke?: number; color?: string }>> = {
  passed: IconArrowRight,
  dropped: IconFilterOff,
  failed: IconAlertTriangle,
  late: IconClockX,
  made: IconSparkles,
  kept: IconStack2,
};

/** One event at one step: a line that says what became of it, and its fields below. */
export function PassageView({ passage, name, type, opened, onlyChanges }: Props) {
  const fields = changes(passage.before, passage.after);
  // An event that goes on as it came is a line; its fields were shown where they last changed.
  const isSame = passage.fate === "passed" && fields.every((field) => field.mark === "same");
  const [open, setOpen] = useState(opened && !isSame);
  const region = useId();
  const both = passage.before !== null && passage.after !== null;
  const shown = onlyChanges && both ? fields.filter((field) => field.mark !== "same") : fields;
  const Icon = ICONS[passage.fate];
  const bad = passage.fate === "failed";
  return (
    <Box>
      <UnstyledButton onClick={() => setOpen(!open)} aria-expanded={open} aria-controls={region} w="100%">
        <Group gap={6} wrap="nowrap" align="flex-start">
          <Box pt={2}>
            {open ? <IconChevronDown size={14} aria-hidden /> : <IconChevronRight size={14} aria-hidden />}
          </Box>
          <Box pt={2}>
            <Icon size={14} color={bad ? "var(--mantine-color-error)" : undefined} aria-hidden />
          </Box>
          <Text size="sm" style={{ overflowWrap: "anywhere" }}>
            <Text span fw={550}>
              {name}
            </Text>{" "}
            <Text span c={bad ? "var(--mantine-color-error)" : "dimmed"}>
              {told(passage, type, fields)}
            </Text>
          </Text>
        </Group>
      </UnstyledButton>
      <Collapse expanded={open} id={region}>
        {shown.length === 0 ? (
          <Text size="xs" c="dimmed" pl="lg">
            No fields changed.
          </Text>
        ) : (
          <FieldTable
            fields={shown}
            before={passage.before ? "In" : null}
            after={passage.after ? "Out" : null}
            label={`Fields of ${name.toLowerCase()}`}
          />
        )}
      </Collapse>
    </Box>
  );
}

/** What became of an event, as a half sentence after its name. */
function told(passage: Passage, type: string, fields: readonly FieldChange[]): string {
  switch (passage.fate) {
    case "failed":
      return `failed: ${passage.error?.message} (${passage.error?.code}). In a flow it becomes a dead letter.`;
    case "dropped":
      return `was dropped: ${whyDropped(type)}`;
    case "late":
      return "arrived late: its window is closed";
    case "kept":
      return "was processed; its results come from several events";
    case "made":
      return "was created here from several events";
    case "passed":
      return `${summary(fields)}${chosen(passage, type)}`;
  }
}

/** Which sinks a route has chosen for the event. */
function chosen({ after }: Passage, type: string): string {
  const { sinks } = (after?.[META] ?? {}) as { sinks?: string[] };
  return type === "route" && sinks ? `, for ${sinks.join(", ")}` : "";
}

function summary(fields: readonly FieldChange[]): string {
  const named = (mark: FieldChange["mark"], sign: string) =>
    fields.filter((field) => field.mark === mark).map((field) => `${sign}${field.name}`);
  const found = [...named("added", "+"), ...named("changed", "~"), ...named("removed", "−")];
  if (found.length === 0) return "passed unchanged";
  const more = found.length > 8 ? ` and ${found.length - 8} more` : "";
  return `${found.slice(0, 8).join(" ")}${more}`;
}
