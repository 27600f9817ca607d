import { Button, FileButton, Group, Select, Stack, Text } from "@mantine/core";
import { IconSparkles, IconUpload } from "@tabler/icons-react";
import { useMemo } from "react";
import type { Problem } from "#/api/client";
import { plural } from "#/components/format";
import { failed } from "#/components/notify";
import { LazyCodeEditor } from "#/editors/LazyCodeEditor";
import type { Column } from "#/editors/language";
import { HandEvent } from "./HandEvent";
import { StreamSamples } from "./StreamSamples";
import {
  detect,
  FORMATS,
  type Format,
  formatOfFile,
  marksIn,
  type Reading,
  textOfEvents,
  withEvent,
} from "./samples";
import { suggested } from "./suggest";

const LARGEST = 10 * 1024 * 1024;

interface Props {
  text: string;
  /** Null: as the text looks. */
  format: Format | null;
  reading: Reading;
  /** The columns of the source, as far as they are known. */
  columns: Column[];
  /** The columns are not known yet. */
  isAsking: boolean;
  /** The stream that the document reads. */
  stream: string | null;
  isSuggestion: boolean;
  problems: readonly Problem[];
  onChange: (text: string, format: Format | null) => void;
}

/** Sample events: written, pasted, uploaded, taken from a stream, made by hand or suggested. */
export function SampleEditor(props: Props) {
  const { text, format, reading, columns, isAsking, stream, isSuggestion, problems, onChange } = props;
  const isEmpty = text.trim() === "";
  const shown = format ?? detect(text);
  const marks = useMemo(() => marksIn(text, shown, problems), [text, shown, problems]);
  const upload = async (file: File | null) => {
    if (!file) return;
    if (file.size > LARGEST)
      return failed(`${file.name} was not loaded`, "Sample files can be at most 10 MB.");
    onChange(await file.text(), formatOfFile(file.name));
  };
  return (
    <Stack gap="xs" component="section" aria-label="Sample events">
      <Group gap="xs">
        <StreamSamples stream={stream} onTake={(events) => onChange(textOfEvents(events), "json")} />
        <FileButton
          onChange={upload}
          accept={Object.values(FORMATS)
            .flatMap(({ endings }) => endings.map((ending) => `.${ending}`))
            .join()}
          inputProps={{ "aria-label": "Sample events file" }}
        >
          {(button) => (
            <Button {...button} size="compact-sm" variant="default" leftSection={<IconUpload size={14} />}>
              File
            </Button>
          )}
        </FileButton>
        <HandEvent
          columns={columns}
          isPossible={shown === "json" || shown === "ndjson" || isEmpty}
          onAdd={(event) => {
            const next = withEvent(isSuggestion ? "" : text, shown, event);
            if (next === null) failed("The event was not added", "Events can only be added to JSON samples.");
            else onChange(next, shown === "ndjson" ? "ndjson" : "json");
          }}
        />
        <Button
          size="compact-sm"
          variant="default"
          leftSection={<IconSparkles size={14} />}
          disabled={columns.length === 0}
          onClick={() => onChange(textOfEvents(suggested(columns)), "json")}
          title="Generates events that match the columns of the source"
        >
          Suggest
        </Button>
      </Group>
      <LazyCodeEditor
        language={shown === "json" || shown === "ndjson" ? "json" : "text"}
        label="Sample events as text"
        value={text}
        minHeight={160}
        maxHeight={420}
        problems={marks}
        onChange={(next) => onChange(next, format)}
      />
      <Group gap="xs" justify="space-between" wrap="nowrap" align="flex-start">
        <Text
          size="xs"
          c={reading.problem && !isEmpty ? "var(--mantine-color-error)" : "dimmed"}
          role="status"
        >
          {isEmpty ? nothing(columns, isAsking) : (reading.problem ?? told(reading, isSuggestion))}
        </Text>
        <Select
          size="xs"
          w={172}
          miw={172}
          aria-label="Format of the sample events"
          value={format ?? ""}
          allowDeselect={false}
          data={[
            { value: "", label: `detected: ${FORMATS[detect(text)].label}` },
            ...Object.entries(FORMATS).map(([value, { label }]) => ({ value, label })),
          ]}
          onChange={(next) => onChange(text, (next || null) as Format | null)}
        />
      </Group>
    </Stack>
  );
}

function nothing(columns: readonly Column[], isAsking: boolean): string {
  if (isAsking) return "Loading the columns of the source to suggest events…";
  return columns.length > 0
    ? "Type or paste events, or click Suggest."
    : "Type or paste events. The columns of the source are unknown, so no events can be suggested.";
}

function told(reading: Reading, isSuggestion: boolean): string {
  if (isSuggestion) return "Suggested from the columns of the source. Edit these events, or use real ones.";
  const count = reading.sent && reading.count !== null ? plural(reading.count, "event") : "Events";
  return `${count}; kept in this tab and restored after a reload.`;
}
