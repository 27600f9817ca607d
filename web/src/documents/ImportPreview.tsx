import { Accordion, Badge, Code, Group, ScrollArea, Stack, Table, Text } from "@mantine/core";
import type { Schemas } from "#/api/client";
import { plural } from "#/components/format";
import { byAction, type Change } from "./bundle";

const LOOKS = {
  create: { title: "New", color: "teal", sign: "+" },
  update: { title: "Changed", color: "blue", sign: "~" },
  delete: { title: "Deleted", color: "red", sign: "−" },
} as const;

/** Beyond so many, a kind of change is only counted. */
const MOST = 200;

/** What an import would do: what is new, what changes field by field, what is deleted. */
export function ImportPreview({ changes }: { changes: readonly Change[] }) {
  const found = byAction(changes);
  return (
    <Stack gap="xs" role="region" aria-label="Changes">
      <Group gap="xs" role="status">
        {(["create", "update", "delete"] as const).map((action) => (
          <Badge key={action} variant="light" color={LOOKS[action].color} tt="none">
            {LOOKS[action].sign} {found[action].length} {LOOKS[action].title.toLowerCase()}
          </Badge>
        ))}
        <Text size="sm" c="dimmed">
          {found.unchanged.length} unchanged
        </Text>
      </Group>
      <ScrollArea.Autosize mah={320} type="auto">
        {(["delete", "update", "create"] as const).map((action) => (
          <Some key={action} action={action} changes={found[action]} />
        ))}
      </ScrollArea.Autosize>
    </Stack>
  );
}

function Some({ action, changes }: { action: keyof typeof LOOKS; changes: Change[] }) {
  if (changes.length === 0) return null;
  const more = changes.length - MOST;
  return (
    <Stack gap={2} mb="xs">
      <Text size="sm" fw={600}>
        {LOOKS[action].title}
      </Text>
      <Accordion multiple chevronPosition="left" variant="default" styles={{ control: { paddingBlock: 0 } }}>
        {changes.slice(0, MOST).map((change) =>
          change.action === "update" ? (
            <Accordion.Item key={`${change.kind}/${change.id}`} value={`${change.kind}/${change.id}`}>
              <Accordion.Control>
                <Named change={change} />
              </Accordion.Control>
              <Accordion.Panel>
                <Fields entries={change.diff} />
              </Accordion.Panel>
            </Accordion.Item>
          ) : (
            <Group key={`${change.kind}/${change.id}`} px="xs" py={2}>
              <Named change={change} />
            </Group>
          ),
        )}
      </Accordion>
      {more > 0 && (
        <Text size="sm" c="dimmed">
          and {more} more
        </Text>
      )}
    </Stack>
  );
}

function Named({ change }: { change: Change }) {
  const fields = change.diff.length;
  return (
    <Text size="sm">
      {LOOKS[change.action as keyof typeof LOOKS].sign} {change.kind.toLowerCase()} <b>{change.name}</b>{" "}
      <Text span c="dimmed" size="sm">
        {fields > 0 && plural(fields, "field")}
      </Text>
    </Text>
  );
}

/** Fields of a document before and after. */
export function Fields({ entries }: { entries: readonly Schemas["DiffEntry"][] }) {
  return (
    <Table.ScrollContainer minWidth={420}>
      <Table verticalSpacing={4} fz="sm">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Field</Table.Th>
            <Table.Th>Before</Table.Th>
            <Table.Th>After</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {entries.map(({ path, op, before, after }) => (
            <Table.Tr key={path}>
              <Table.Td>
                <Code>{path}</Code>
              </Table.Td>
              <Table.Td>{op === "add" ? <Absent /> : <Value value={before} />}</Table.Td>
              <Table.Td>{op === "remove" ? <Absent /> : <Value value={after} />}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

const Absent = () => (
  <Text span size="sm" c="dimmed">
    not set
  </Text>
);

function Value({ value }: { value: unknown }) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
  return <Code style={{ whiteSpace: "pre-wrap", wordBreak: "break-word" }}>{text}</Code>;
}
