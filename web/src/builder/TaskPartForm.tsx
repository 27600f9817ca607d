import { Anchor, Stack, Text } from "@mantine/core";
import { useMemo } from "react";
import { Link } from "react-router";
import { pageOf } from "#/api/kinds";
import { type JsonSchema, SchemaForm } from "#/forms/SchemaForm";
import { columnsBefore } from "./check";
import { useBuilder } from "./context";
import { setPart } from "./model";
import { type Part, partOfPath } from "./parts";

/** The ends of a task, which are streams; and a task as a step of a pipeline. */
export function TaskPartForm({ part }: { part: Part }) {
  const { place, root, check, view, edit, isStale } = useBuilder();
  const schema = useMemo(() => schemaOf(root, part), [root, part]);
  const context = useMemo(
    () => ({ columns: columnsBefore(check, view, part), readOnly: isStale }),
    [check, view, part, isStale],
  );
  const isTask = part.type === "task";
  // A task in a list has no field of its own: its place is that of the item.
  const problems = isTask
    ? check.errors.map((each) => (each.path === part.path ? { ...each, path: `${part.path}.task` } : each))
    : check.errors.filter((each) => partOfPath(each.path) === part.key);
  return (
    <Stack gap="md">
      {isTask && (
        <Text size="sm" c="dimmed">
          The steps defined in this task run here.
        </Text>
      )}
      <SchemaForm
        schema={schema}
        root={root}
        value={part.value}
        path={part.path}
        problems={problems}
        hide={HIDDEN}
        first={["input", "stream", "position"]}
        context={context}
        onChange={(next) => edit((text) => setPart(text, place, part, next), part.key)}
      />
      {isTask && (
        <Anchor component={Link} to={pageOf("Task", part.id)} size="sm" target="_blank">
          Open {part.id}
        </Anchor>
      )}
    </Stack>
  );
}

// Of a task's spec its input has these; the rest are other parts and settings.
const HIDDEN = ["processors", "outputs", "batch", "latency", "restart", "tests"];

function schemaOf(root: JsonSchema, part: Part): JsonSchema {
  const schemas = (root.components as { schemas: Record<string, JsonSchema> }).schemas;
  if (part.type !== "task") return schemas[part.group === "sink" ? "TaskOutput" : "TaskSpec"]!;
  const task = { type: "string", description: "Id of a Task." };
  return { type: "object", properties: { task }, required: ["task"] };
}
