import { Group, SegmentedControl, Stack, Text, Title } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import type { Kind } from "#/api/kinds";
import { Loading } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { yamlOf } from "#/documents/content";
import { useDiff, useRevision } from "./api";
import { Entries } from "./Entries";

const DiffView = lazy(() => import("#/editors/DiffView"));

interface Props {
  kind: Kind;
  id: string;
  before: number;
  after: number;
}

/** How two revisions differ: field by field, or as text. */
export function Comparison({ kind, id, before, after }: Props) {
  const [view, setView] = useState("fields");
  return (
    <Stack gap="xs" component="section" aria-label="Difference">
      <Group justify="space-between">
        <Title order={2} size="h4">
          From revision {before} to {after}
        </Title>
        <SegmentedControl
          size="xs"
          aria-label="Comparison view"
          data={[
            { value: "fields", label: "Field by field" },
            { value: "text", label: "YAML" },
          ]}
          value={view}
          onChange={setView}
        />
      </Group>
      {before === after ? (
        <Text size="sm" c="dimmed">
          Select two different revisions above.
        </Text>
      ) : view === "fields" ? (
        <Fields kind={kind} id={id} before={before} after={after} />
      ) : (
        <Texts kind={kind} id={id} before={before} after={after} />
      )}
    </Stack>
  );
}

function Fields({ kind, id, before, after }: Props) {
  const diff = useDiff(kind, id, before, after);
  if (diff.error) return <Failure error={diff.error} title="Could not compare the revisions" />;
  if (!diff.data) return <Loading what="Comparing" />;
  return <Entries entries={diff.data.entries} />;
}

function Texts({ kind, id, before, after }: Props) {
  const old = useRevision(kind, id, before);
  const next = useRevision(kind, id, after);
  const error = old.error ?? next.error;
  if (error) return <Failure error={error} title="Could not compare the revisions" />;
  if (!old.data || !next.data) return <Loading what="Loading both revisions" />;
  return (
    <Suspense fallback={<Loading />}>
      <DiffView
        before={yamlOf(old.data.document)}
        after={yamlOf(next.data.document)}
        language="yaml"
        labels={[`Revision ${before}`, `Revision ${after}`]}
      />
    </Suspense>
  );
}
