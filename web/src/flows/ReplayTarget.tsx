import { Checkbox, Group, Radio, Select, Stack, TextInput } from "@mantine/core";
import { useDocuments } from "#/api/documents";
import { KINDS, type Kind } from "#/api/kinds";
import { useSinks } from "./api";
import type { ReplayForm, Target } from "./replayOrder";

interface Props {
  kind: Kind;
  id: string;
  form: ReplayForm;
  onChange: (change: Partial<ReplayForm>) => void;
  error?: string;
}

const SHADOW = "Only these files receive the events, so you can compare them with the original delivery.";

/** Where the events of a replay go. */
export function ReplayTarget({ kind, id, form, onChange, error }: Props) {
  const sinks = useSinks(kind, id);
  return (
    <Stack gap="xs">
      <Radio.Group
        label="Destination"
        value={form.target}
        onChange={(target) => onChange({ target: target as Target })}
        error={form.target === "all" ? error : undefined}
      >
        <Stack gap={6} mt={4}>
          <Radio value="all" label="All sinks" description="Every sink receives these events again." />
          <Radio value="some" label="Selected sinks" />
          <Radio value="file" label="Separate files" description={SHADOW} />
          <Radio value="stream" label="A stream" />
        </Stack>
      </Radio.Group>
      {form.target === "some" && (
        <Checkbox.Group
          label="Sinks"
          value={form.sinks}
          onChange={(chosen) => onChange({ sinks: chosen })}
          error={error}
        >
          <Group mt={4}>
            {sinks.data?.map((sink) => (
              <Checkbox key={sink.id} value={sink.id} label={`${sink.id} (${sink.type})`} />
            ))}
          </Group>
        </Checkbox.Group>
      )}
      {form.target === "file" && (
        <TextInput
          label="Directory"
          description="On the worker's machine; the events are written as JSON."
          value={form.path}
          onChange={(event) => onChange({ path: event.currentTarget.value })}
          error={error}
          required
        />
      )}
      {form.target === "stream" && (
        <StreamSelect value={form.stream} onChange={(stream) => onChange({ stream })} error={error} />
      )}
    </Stack>
  );
}

interface StreamProps {
  value: string;
  onChange: (stream: string) => void;
  error?: string;
}

function StreamSelect({ value, onChange, error }: StreamProps) {
  const streams = useDocuments(KINDS.Stream);
  return (
    <Select
      label="Stream"
      placeholder="Choose one"
      searchable
      limit={100}
      nothingFoundMessage="No matching stream"
      data={streams.data?.map((each) => ({ value: each.id, label: each.name })) ?? []}
      value={value || null}
      onChange={(next) => onChange(next ?? "")}
      error={error}
      required
    />
  );
}
