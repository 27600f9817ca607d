import { Grid, Paper, Stack, Title } from "@mantine/core";
import { KINDS } from "#/api/kinds";
import { withDefaults } from "#/api/openapi";
import { EditFrame } from "#/documents/editing/EditFrame";
import { Identity } from "#/documents/editing/Identity";
import type { Opened } from "#/documents/editing/opening";
import { useEditing } from "#/documents/editing/useEditing";
import { type JsonSchema, SchemaForm } from "#/forms/SchemaForm";
import { DiskEstimate } from "./DiskEstimate";
import type { StreamSettings } from "./estimate";
import { Guarantee } from "./Guarantee";
import { Presets } from "./Presets";

const SPEC: JsonSchema = { $ref: "#/components/schemas/StreamSpec" };
const BASIC = ["schema", "timestamps"];
const ADVANCED = ["wal", "buffer", "storage"];
const READ_ONLY = { readOnly: true };

/** The form of a stream: what it holds, how it keeps it, and what that means. */
export function StreamForm({ opened, root }: { opened: Opened; root: JsonSchema }) {
  const editing = useEditing(KINDS.Stream, opened);
  const { spec, setSpec, problems, fault } = editing;
  const { schemas } = root.components as { schemas: Record<string, JsonSchema> };
  const effective = withDefaults(spec, SPEC, schemas) as StreamSettings & Record<string, unknown>;
  const common = {
    schema: SPEC,
    root,
    value: spec,
    onChange: setSpec,
    path: "spec",
    problems,
    context: fault ? READ_ONLY : undefined,
  };
  const title = opened.id === null ? "New stream" : `Edit ${String(editing.metadata.name ?? opened.id)}`;
  return (
    <EditFrame editing={editing} title={title} about={KINDS.Stream.about}>
      <Grid gap="lg">
        <Grid.Col span={{ base: 12, lg: 8 }}>
          <Stack gap="lg">
            <Paper withBorder p="md">
              <Identity editing={editing} root={root} />
            </Paper>
            <Paper withBorder p="md">
              <Title order={2} size="h4" mb="sm">
                Schema
              </Title>
              <SchemaForm {...common} hide={ADVANCED} />
            </Paper>
            <Paper withBorder p="md">
              <Title order={2} size="h4" mb="sm">
                Advanced settings
              </Title>
              <SchemaForm {...common} hide={BASIC} first={ADVANCED} />
            </Paper>
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 4 }}>
          <Stack gap="lg">
            <Guarantee spec={spec} />
            <Presets spec={spec} effective={effective} onChange={setSpec} isDisabled={fault !== null} />
            <DiskEstimate id={opened.id} settings={effective} />
          </Stack>
        </Grid.Col>
      </Grid>
    </EditFrame>
  );
}
