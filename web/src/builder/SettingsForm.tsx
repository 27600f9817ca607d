import { Divider, Stack, Text } from "@mantine/core";
import { useMemo } from "react";
import type { Fields } from "#/documents/editing/yaml";
import { type JsonSchema, SchemaForm } from "#/forms/SchemaForm";
import { useBuilder } from "./context";
import { setMetadata, setSpec } from "./model";
import { partOfPath } from "./parts";

const PARTS = ["source", "input", "position", "processors", "tasks", "sinks", "outputs", "tests"];

/** What is said about the whole: its name, how it batches, what it waits for, what happens after a failure. */
export function SettingsForm() {
  const { place, id, value, root, check, edit, isStale } = useBuilder();
  const schemas = (root.components as { schemas: Record<string, JsonSchema> }).schemas;
  const spec = schemas[place === "tasks" ? "TaskSpec" : "PipelineSpec"]!;
  const names = useMemo(
    () => Object.keys(spec.properties ?? {}).filter((name) => !PARTS.includes(name)),
    [spec],
  );
  const context = useMemo(() => ({ readOnly: isStale }), [isStale]);
  const problems = check.errors.filter((each) => partOfPath(each.path) === "settings");
  const own = Object.fromEntries(Object.entries(value.spec ?? {}).filter(([name]) => names.includes(name)));
  return (
    <Stack gap="md">
      {id === null ? (
        <Text size="sm" c="dimmed">
          {check.id ? (
            <>
              ID: <code>{check.id}</code> (can't be changed later)
            </>
          ) : (
            "The id is derived from the name and can't be changed later."
          )}
        </Text>
      ) : (
        <Text size="sm" c="dimmed">
          <code>{id}</code> can't be renamed; clone the document to use another name.
        </Text>
      )}
      <SchemaForm
        schema={schemas.Metadata!}
        root={root}
        value={(value.metadata ?? {}) as Fields}
        path="metadata"
        problems={check.errors}
        hide={id === null ? [] : ["name"]}
        first={["name", "description"]}
        context={context}
        onChange={(next) => edit((text) => setMetadata(text, next), "metadata")}
      />
      <Divider />
      <SchemaForm
        schema={spec}
        root={root}
        value={own}
        path="spec"
        problems={problems}
        hide={PARTS}
        first={["batch", "latency", "commit_policy", "restart", "dead_letters", "buffer"].filter((name) =>
          names.includes(name),
        )}
        context={context}
        onChange={(next) => edit((text) => setSpec(text, next, names), "settings")}
      />
    </Stack>
  );
}
