import { Table, Text } from "@mantine/core";
import type { Schemas } from "#/api/client";
import classes from "./testing.module.css";

/** What is not as a test expects it: where, what was expected, what came. */
export function Differences(props: { differences: readonly Schemas["Difference"][]; label: string }) {
  const { differences, label } = props;
  if (differences.length === 0) return null;
  return (
    <Table.ScrollContainer
      minWidth={0}
      scrollAreaProps={{ viewportProps: { tabIndex: 0, "aria-label": label } }}
    >
      <Table aria-label={label} className={classes.differences} verticalSpacing={4} horizontalSpacing="xs">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Where</Table.Th>
            <Table.Th>Expected</Table.Th>
            <Table.Th>Actual</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {differences.map(({ where, message, expected, actual }) => (
            <Table.Tr key={`${where} ${message} ${JSON.stringify(actual)}`}>
              <Table.Td>
                <span className={classes.value}>{where}</span>
                <Text size="xs" c="dimmed">
                  {message}
                </Text>
              </Table.Td>
              <Table.Td className={classes.expected}>{shown(expected)}</Table.Td>
              <Table.Td className={classes.actual}>{shown(actual)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return "–";
  const event = typeof value === "object" && "$meta" in value ? { ...value, $meta: undefined } : value;
  return JSON.stringify(event);
}
