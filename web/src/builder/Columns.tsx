import { ScrollArea, Table, Text } from "@mantine/core";
import type { Schemas } from "#/api/client";

/** The columns of events between two steps. */
export function Columns({ columns, title }: { columns: readonly Schemas["Column"][]; title: string }) {
  return (
    <ScrollArea.Autosize mah={260} maw={340}>
      <Text size="xs" fw={650} mb={4}>
        {title}
      </Text>
      <Table fz="xs" verticalSpacing={2} horizontalSpacing={6}>
        <Table.Tbody>
          {columns.map(({ name, type }) => (
            <Table.Tr key={name}>
              <Table.Td ff="monospace">{name}</Table.Td>
              <Table.Td ff="monospace" c="dimmed">
                {type}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollArea.Autosize>
  );
}
