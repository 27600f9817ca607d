import { Alert, Button, Group, NumberInput, Stack, Text } from "@mantine/core";
import { IconCheck, IconPlayerStop, IconSend } from "@tabler/icons-react";
import { useState } from "react";
import { problemsOf } from "#/api/client";
import { plural } from "#/components/format";
import { Problems } from "#/components/Problems";
import { LazyCodeEditor } from "#/editors/LazyCodeEditor";
import { detect, FORMATS } from "#/testing/samples";
import { sampleBody } from "./address";
import { type Progress, useSending } from "./useSending";

interface Props {
  address: string;
  columns: readonly { name: string; type: string }[];
  isSaved: boolean;
}

const SAMPLES = 3;

/** Sends events to an HTTP source as any client could: pasted ones, or samples that fit its columns, also repeatedly. */
export function SendTab({ address, columns, isSaved }: Props) {
  const [text, setText] = useState("");
  const [times, setTimes] = useState(1);
  const [pause, setPause] = useState(1000);
  const { progress, isSending, send, stop } = useSending(address);
  if (!isSaved)
    return (
      <Text size="sm" c="dimmed">
        Save the pipeline first: it accepts events from then on. To try the steps now, use Test.
      </Text>
    );
  return (
    <Stack gap="sm">
      <Text size="sm">
        Sends to <code>{address}</code>. These events are stored and processed like any others.
      </Text>
      <LazyCodeEditor
        language={/^\s*[[{]/.test(text) ? "json" : "text"}
        label="Events to send"
        value={text}
        onChange={setText}
        minHeight={140}
        maxHeight={320}
      />
      <Group justify="space-between" gap="xs">
        <Text size="xs" c="dimmed">
          {text.trim() === ""
            ? "Paste JSON, JSON lines, CSV with a header, or text."
            : `Sent as ${FORMATS[detect(text)].label}.`}
        </Text>
        <Button size="compact-sm" variant="default" onClick={() => setText(sampleBody(columns, SAMPLES))}>
          Insert samples
        </Button>
      </Group>
      <Group gap="sm" align="flex-end">
        <NumberInput
          label="Times"
          w={90}
          min={1}
          max={100_000}
          value={times}
          onChange={(next) => setTimes(Number(next) || 1)}
        />
        <NumberInput
          label="Pause between, ms"
          w={170}
          min={0}
          max={3_600_000}
          value={pause}
          disabled={times === 1}
          onChange={(next) => setPause(Number(next) || 0)}
        />
        <Button
          leftSection={<IconSend size={16} />}
          loading={isSending && times === 1}
          disabled={text.trim() === "" || isSending}
          onClick={() => void send({ text, times, pause })}
        >
          Send
        </Button>
        {isSending && times > 1 && (
          <Button variant="default" leftSection={<IconPlayerStop size={16} />} onClick={stop}>
            Stop
          </Button>
        )}
      </Group>
      <Result progress={progress} times={times} />
    </Stack>
  );
}

function Result({ progress: { sent, events, last, error }, times }: { progress: Progress; times: number }) {
  return (
    <>
      {last && (
        <Alert
          color="teal"
          icon={<IconCheck />}
          role="status"
          title={`Acknowledged ${plural(events, "event")}`}
        >
          {times > 1 && `${sent} of ${plural(times, "request")}. `}
          {last.guarantee}
        </Alert>
      )}
      {error !== null && <Problems problems={problemsOf(error)} title="The request was rejected" />}
    </>
  );
}
