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
        {runs ? "It runs by itself" : "What it does"}
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
      Pipelines use it with <Code>{`source: {ref: ${own}}`}</Code>.
    </>
  );
  if (spec.type === "stream") return <>It names a stream and where to begin in it. {reference}</>;
  const stream = spec.stream ? String(spec.stream) : spec.auto_create_stream === true ? own : null;
  if (spec.type === "http") {
    const path = typeof spec.path === "string" ? spec.path.replace(/^\//, "") : own;
    return stream ? (
      <>
        What is sent to <Code>POST /ingest/{path}</Code> is appended to the stream <Code>{stream}</Code>,
        before the sender is answered. Any number of pipelines and tasks can read it there.
      </>
    ) : (
      <>
        Without a stream it is a definition: a pipeline that refers to it gets what is sent to it. {reference}{" "}
        With a stream, it takes events by itself and any number of pipelines can read them.
      </>
    );
  }
  return stream ? (
    <>
      What it reads is published into the stream <Code>{stream}</Code>. Any number of pipelines and tasks can
      read it there, each at its own pace.
    </>
  ) : (
    <>
      Without a stream it is a definition, which does not run by itself. {reference} With a stream, it
      publishes into it by itself.
    </>
  );
}

function ofSink({ spec, derivedId }: Editing): ReactNode {
  const own = derivedId ?? "its_id";
  if (spec.stream && spec.type !== "stream") {
    return (
      <>
        It subscribes to the stream <Code>{String(spec.stream)}</Code> and delivers every event of it, from{" "}
        <Code>{String(spec.position ?? "earliest")}</Code> on. It keeps its own place in the stream.
      </>
    );
  }
  return (
    <>
      {spec.type === "stream"
        ? "It appends to a stream."
        : "Without a stream it is a definition, which does not run."}{" "}
      Pipelines use it with <Code>{`sinks: [{ref: ${own}}]`}</Code>.
      {spec.type !== "stream" && " With a stream, it subscribes to it and delivers by itself."}
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
  const all = id === null ? data : [{ value: "", label: "As it is" }, ...data];
  return (
    <>
      <Text size="sm" fw={500} mt="md" mb={4} id="status-choice">
        Once it is saved
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
