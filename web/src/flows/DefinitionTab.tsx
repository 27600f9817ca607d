import { Code, Paper, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import type { AnyDocument, Kind } from "#/api/kinds";
import { contentOf, yamlOf } from "#/documents/content";
import { Referrers } from "#/documents/DeleteDialog";

/** A source or sink that does not run by itself: what it says, who uses it, and how it could run. */
export function DefinitionTab({ kind, document }: { kind: Kind; document: AnyDocument }) {
  const referrers = document.referrers ?? [];
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Stack gap="md">
        <Paper withBorder p="md" component="section">
          <Title order={2} size="h5" mb="xs">
            How this runs
          </Title>
          <HowItRuns kind={kind} document={document} />
        </Paper>
        <Paper withBorder p="md" component="section">
          <Title order={2} size="h5" mb="xs">
            Referenced by
          </Title>
          {referrers.length > 0 ? (
            <Referrers referrers={referrers} />
          ) : (
            <Text size="sm" c="dimmed">
              No other document yet. A pipeline refers to it with{" "}
              <Code>{referenceOf(kind, document.id)}</Code>
            </Text>
          )}
        </Paper>
      </Stack>
      <Paper withBorder p="md" component="section" miw={0}>
        <Title order={2} size="h5" mb="xs">
          Document
        </Title>
        <Code block fz="xs" style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
          {yamlOf(contentOf(document))}
        </Code>
      </Paper>
    </SimpleGrid>
  );
}

const referenceOf = (kind: Kind, id: string) =>
  kind.name === "Source"
    ? `source: {ref: ${id}}`
    : kind.name === "Sink"
      ? `sinks: [{ref: ${id}}]`
      : `tasks: [${id}]`;

function HowItRuns({ kind, document }: { kind: Kind; document: AnyDocument }) {
  const { stream, type } = document.spec as { stream?: string; type?: string };
  if (kind.name === "Source" && stream && type === "http") {
    return (
      <Text size="sm">
        The server accepts its events at <Code>/ingest/{document.id}</Code> and appends them to stream{" "}
        {stream}. No worker is needed, so it has no status.
      </Text>
    );
  }
  if (kind.name === "Task") {
    return (
      <Text size="sm">
        This task has no input, so it doesn't run on its own: pipelines run its steps. With <Code>input</Code>{" "}
        and <Code>outputs</Code> it runs on its own, from stream to stream.
      </Text>
    );
  }
  return (
    <Text size="sm">
      This is a definition: it runs inside the pipelines that refer to it. Set its <Code>stream</Code> to run
      it on its own:{" "}
      {kind.name === "Source"
        ? "it then publishes to that stream."
        : "it then delivers the events of that stream."}
    </Text>
  );
}
