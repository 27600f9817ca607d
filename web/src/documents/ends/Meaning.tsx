import { Code, Paper, SegmentedControl, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import type { Editing } from "../editing/useEditing";

/** What this source or sink will be: something that runs, or a definition that pipelines refer to. */
export function Meaning({ editing }: { editing: Editing }) {
  const { kind, spec } = editing;
  const runs = runsByItself(kind.name, spec);
  return (
    <Paper withBorder p="md">
      <Title order={2} size="h5" mb="xs">
        {runs ? "Runs on its own" : "Usage"}
      </Title>
      <Text size="sm" aria-live="polite" component="div">
        {kind.name === "Source" ? ofSource(editing) : ofSink(editing)}
      </Text>
      {runs && <StatusChoice editing={editing} />}
    </Paper>
  );
}

/** A source that is polled, or any sink, runs when it has a stream; what is sent over HTTP needs nobody to run. */
function runsByItself(kind: string, spec: Record<string, unknown>): boolean {
  if (kind === "Sink") return Boolean(spec.stream) && spec.type !== "stream";
  const hasStream = Boolean(spec.stream) || spec.auto_create_stream === true;
  return hasStream && spec.type !== "http" && spec.type !== "stream";
}

function ofSource({ spec, derivedId }: Editing): ReactNode {
  const own = derivedId ?? "its_id";
  const reference = (
    <>
      Pipelines refer to it with <Code>{`source: {ref: ${own}}`}</Code>.
    </>
  );
  if (spec.type === "stream") return <>Names a stream and a start position. {reference}</>;
  const stream = spec.stream ? String(spec.stream) : spec.auto_create_stream === true ? own : null;
  if (spec.type === "http") {
    const path = typeof spec.path === "string" ? spec.path.replace(/^\//, "") : own;
    return stream ? (
      <>
        Events sent to <Code>POST /ingest/{path}</Code> are appended to stream <Code>{stream}</Code> before
        the request is acknowledged. Any number of pipelines and tasks can read that stream.
      </>
    ) : (
      <>
        Without a stream this is only a definition: a pipeline that refers to it receives the events sent to
        it. {reference} With a stream it accepts events on its own, and any number of pipelines can read them.
      </>
    );
  }
  return stream ? (
    <>
      Events are published to stream <Code>{stream}</Code>. Any number of pipelines and tasks can read that
      stream, each at its own pace.
    </>
  ) : (
    <>
      Without a stream this is only a definition and doesn't run. {reference} With a stream it runs on its own
      and publishes to that stream.
    </>
  );
}

function ofSink({ spec, derivedId }: Editing): ReactNode {
  const own = derivedId ?? "its_id";
  if (spec.stream && spec.type !== "stream") {
    return (
      <>
        Subscribes to stream <Code>{String(spec.stream)}</Code> and delivers every event, starting at{" "}
        <Code>{String(spec.position ?? "earliest")}</Code>. It keeps its own position in the stream.
      </>
    );
  }
  return (
    <>
      {spec.type === "stream"
        ? "Appends events to a stream."
        : "Without a stream this is only a definition and doesn't run."}{" "}
      Pipelines refer to it with <Code>{`sinks: [{ref: ${own}}]`}</Code>.
      {spec.type !== "stream" &&
        " With a stream it runs on its own, subscribes to that stream and delivers its events."}
    </>
  );
}

function StatusChoice({ editing }: { editing: Editing }) {
  const { id, value, change } = editing;
  const data = [
    { value: "active", label: "Active" },
    { value: "paused", label: "Paused" },
  ];
  // An edit need not say anything: then it goes on as it is.
  const all = id === null ? data : [{ value: "", label: "Unchanged" }, ...data];
  return (
    <>
      <Text size="sm" fw={500} mt="md" mb={4} id="status-choice">
        Status after saving
      </Text>
      <SegmentedControl
        aria-labelledby="status-choice"
        data={all}
        value={value.status ?? all[0]!.value}
        onChange={(next) => {
          const { status: _, ...rest } = value;
          change(next === all[0]!.value ? rest : { ...rest, status: next });
        }}
      />
    </>
  );
}
