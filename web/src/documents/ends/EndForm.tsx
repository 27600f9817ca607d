import { Badge, Button, Grid, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useState } from "react";
import type { Kind } from "#/api/kinds";
import { retyped, useCatalogue } from "#/builder/catalogue";
import { Loading } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { Prose } from "#/forms/Prose";
import { type JsonSchema, SchemaForm } from "#/forms/SchemaForm";
import { EditFrame } from "../editing/EditFrame";
import { Identity } from "../editing/Identity";
import type { Opened } from "../editing/opening";
import { bindings } from "../editing/schemas";
import { useEditing } from "../editing/useEditing";
import { Meaning } from "./Meaning";
import { TypeGallery } from "./TypeGallery";

interface Props {
  kind: Kind;
  opened: Opened;
  root: JsonSchema;
}

/** The form of a registered source or sink: its type first, then what that type asks for. */
export function EndForm({ kind, opened, root }: Props) {
  const editing = useEditing(kind, opened);
  const catalogue = useCatalogue();
  const { spec, setSpec, problems, fault } = editing;
  const [isChoosing, setChoosing] = useState(spec.type === undefined);
  const schemas = bindings(root, kind.name as "Source" | "Sink");
  const type = typeof spec.type === "string" ? spec.type : undefined;
  const schema = type === undefined ? undefined : schemas[type];
  const components = kind.name === "Source" ? catalogue.data?.sources : catalogue.data?.sinks;
  const component = components?.find((each) => each.type === type);
  const choose = (next: string) => {
    setSpec(type === undefined ? { type: next } : retyped(spec, next, schemas[next]));
    setChoosing(false);
  };
  const title = opened.id === null ? `New ${kind.one}` : `Edit ${String(editing.metadata.name ?? opened.id)}`;
  return (
    <EditFrame editing={editing} title={title} about={kind.about}>
      {isChoosing ? (
        <>
          <Failure error={catalogue.error} />
          {components ? (
            <TypeGallery
              kind={kind}
              components={components.filter((each) => schemas[each.type])}
              current={type}
              onChoose={choose}
            />
          ) : (
            <Loading />
          )}
        </>
      ) : (
        <Grid gap="lg">
          <Grid.Col span={{ base: 12, lg: 8 }}>
            <Stack gap="lg">
              <Paper withBorder p="md">
                <Identity editing={editing} root={root} />
              </Paper>
              <Paper withBorder p="md">
                <Group justify="space-between" mb="sm">
                  <Title order={2} size="h4">
                    Type: {type ?? "none"}
                  </Title>
                  <Button size="compact-sm" variant="default" onClick={() => setChoosing(true)}>
                    Change type
                  </Button>
                </Group>
                {schema && (
                  <SchemaForm
                    key={type}
                    schema={schema}
                    root={root}
                    value={spec}
                    onChange={setSpec}
                    path="spec"
                    problems={problems}
                    first={FIRST}
                    context={fault ? READ_ONLY : undefined}
                  />
                )}
                {!schema && type !== undefined && (
                  <Text size="sm">There is no {kind.one} of this type here. Choose another one.</Text>
                )}
              </Paper>
            </Stack>
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 4 }}>
            <Stack gap="lg">
              <Meaning editing={editing} />
              {component && (
                <Paper withBorder p="md">
                  <Group gap="xs" mb="xs">
                    <Title order={2} size="h5">
                      About {component.type}
                    </Title>
                    {component.guarantee && (
                      <Badge tt="none" variant="light">
                        {component.guarantee}
                      </Badge>
                    )}
                  </Group>
                  <Text size="sm" component="div" style={{ whiteSpace: "pre-line" }}>
                    <Prose text={unwrapped(component.description)} />
                  </Text>
                </Paper>
              )}
            </Stack>
          </Grid.Col>
        </Grid>
      )}
    </EditFrame>
  );
}

const FIRST = ["stream", "auto_create_stream", "position"];
const READ_ONLY = { readOnly: true };

// The text of a docstring: lines of a paragraph belong together.
const unwrapped = (text: string) => text.replace(/([^\n])\n(?![\n\-*])/g, "$1 ");
