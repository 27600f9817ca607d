import { Anchor, Badge, Code, Group, Text } from "@mantine/core";
import { Link } from "react-router";
import { type AnyDocument, KINDS, type Kind, type KindName, pageOf } from "#/api/kinds";
import { usePulse } from "#/api/overview";
import { ago, moment, plural } from "#/components/format";

/** Who a document is, in one line: id, revision, worker, when it was changed, labels. */
export function FlowFacts({ kind, document }: { kind: Kind; document: AnyDocument }) {
  const labels = Object.entries(document.metadata.labels ?? {});
  const { overview } = usePulse();
  const worker = overview?.workers.find(({ id }) => id === document.worker);
  const { spark_ui: sparkUi } = (worker?.info ?? {}) as { spark_ui?: string };
  return (
    <Group gap="md" fz="sm" c="dimmed">
      <span>
        id <Code>{document.id}</Code>
      </span>
      <Anchor component={Link} to="?tab=revisions" size="sm">
        revision {document.revision}
      </Anchor>
      {document.worker && (
        <span>
          on worker{" "}
          <Anchor component={Link} to="/workers" size="sm" underline="always" title={document.worker}>
            {document.worker.slice(0, 8)}
          </Anchor>
        </span>
      )}
      {sparkUi && (
        <Anchor href={sparkUi} size="sm" target="_blank" rel="noreferrer">
          Spark UI
        </Anchor>
      )}
      <Text span size="sm" title={moment(document.updated_at)}>
        changed {ago(document.updated_at)}
      </Text>
      {labels.map(([name, value]) =>
        name === "replay_of" ? (
          <ReplayOf key={name} value={value} />
        ) : (
          <Badge key={name} variant="default" tt="none" fw={500} maw={280}>
            {name}: {value}
          </Badge>
        ),
      )}
      {kind.name !== "Pipeline" && document.referrers && (
        <span>
          {document.referrers.length === 0
            ? "not referenced"
            : `referenced by ${plural(document.referrers.length, "document")}`}
        </span>
      )}
    </Group>
  );
}

/** The label of a replay: the id of a pipeline, or `task/` and that of a task. */
function ReplayOf({ value }: { value: string }) {
  const [place, id] = value.includes("/") ? value.split("/") : ["pipeline", value];
  const kind = Object.values(KINDS).find((each) => each.one === place)?.name ?? ("Pipeline" as KindName);
  return (
    <span>
      replay of{" "}
      <Anchor component={Link} to={pageOf(kind, id ?? value)} size="sm" underline="always">
        {id}
      </Anchor>
    </span>
  );
}
