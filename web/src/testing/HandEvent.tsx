import { Button, Modal, ScrollArea, Stack, Text, TextInput } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import type { Column } from "#/editors/language";
import { isRaw, parseType, sampleEvent } from "./suggest";
import type { Event } from "./trace";

interface Props {
  columns: Column[];
  isPossible: boolean;
  onAdd: (event: Event) => void;
}

/** One more event, made by hand: a field for each column of the source. */
export function HandEvent({ columns, isPossible, onAdd }: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        leftSection={<IconPlus size={14} />}
        disabled={columns.length === 0 || !isPossible}
        onClick={() => setOpen(true)}
      >
        Event
      </Button>
      <Modal
        opened={isOpen}
        onClose={() => setOpen(false)}
        title="Add an event"
        closeButtonProps={{ "aria-label": "Close" }}
      >
        <Fields
          columns={isRaw(columns) ? columns.slice(0, 2) : columns}
          onAdd={(event) => {
            setOpen(false);
            onAdd(event);
          }}
        />
      </Modal>
    </>
  );
}

function Fields({ columns, onAdd }: { columns: Column[]; onAdd: (event: Event) => void }) {
  const [texts, setTexts] = useState<Record<string, string>>({});
  const sample = sampleEvent(columns);
  return (
    <form
      onSubmit={(submit) => {
        submit.preventDefault();
        submit.stopPropagation(); // a portal still bubbles to the form around it
        onAdd(eventOf(columns, texts));
      }}
    >
      <Stack gap="xs">
        <Text size="xs" c="dimmed">
          Empty fields are null.
        </Text>
        <ScrollArea.Autosize mah={320} type="auto" offsetScrollbars>
          <Stack gap={6}>
            {columns.map(({ name, type }, place) => (
              <TextInput
                key={name}
                size="xs"
                label={`${name} (${type})`}
                placeholder={textOf(sample[name])}
                data-autofocus={place === 0 || undefined}
                value={texts[name] ?? ""}
                onChange={({ currentTarget: { value } }) => setTexts({ ...texts, [name]: value })}
              />
            ))}
          </Stack>
        </ScrollArea.Autosize>
        <Button type="submit">Add the event</Button>
      </Stack>
    </form>
  );
}

const textOf = (value: unknown) =>
  value === undefined ? undefined : typeof value === "string" ? value : JSON.stringify(value);

/** What was typed as an event; the server says what does not fit. */
export function eventOf(columns: readonly Column[], texts: Record<string, string>): Event {
  return Object.fromEntries(
    columns.map(({ name, type }) => [name, texts[name] ? typed(texts[name], type) : null]),
  );
}

const TEXTUAL = new Set(["string", "varchar", "char", "binary", "date", "timestamp", "timestamp_ntz"]);

function typed(text: string, type: string): unknown {
  if (TEXTUAL.has(parseType(type).name)) return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
