import { Anchor, Badge, Table, Text } from "@mantine/core";
import { moment } from "#/components/format";
import { WideTable } from "#/components/WideTable";
import classes from "./access.module.css";
import type { AuditEntry } from "./types";

interface Props {
  entries: readonly AuditEntry[];
  onOpen: (entry: AuditEntry) => void;
}

/** Entries of the audit log, one a row. */
export function AuditTable({ entries, onOpen }: Props) {
  return (
    <WideTable least={820} withFrame verticalSpacing={6} highlightOnHover aria-label="Audit log">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Time</Table.Th>
          <Table.Th>User</Table.Th>
          <Table.Th>Action</Table.Th>
          <Table.Th>Target</Table.Th>
          <Table.Th>Result</Table.Th>
          <Table.Th>Address</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {entries.map((entry) => (
          <Table.Tr key={entry.id}>
            <Table.Td className={classes.line}>{moment(entry.at)}</Table.Td>
            <Table.Td className={classes.wrap}>
              {entry.user ?? "–"}{" "}
              <Text span size="sm" c="dimmed">
                {entry.via}
              </Text>
            </Table.Td>
            <Table.Td>
              <Anchor
                component="button"
                type="button"
                size="sm"
                onClick={() => onOpen(entry)}
                aria-label={`Show ${entry.action} at ${moment(entry.at)}`}
              >
                {entry.action}
              </Anchor>
            </Table.Td>
            <Table.Td data-label="Target" className={classes.wrap}>
              {entry.target}
            </Table.Td>
            <Table.Td>
              <Result status={entry.status} />
            </Table.Td>
            <Table.Td data-label="Address" className={classes.wrap}>
              {entry.address ?? "–"}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </WideTable>
  );
}

/** Whether it was done, by the status of the answer. */
export function Result({ status }: { status: number }) {
  const isDone = status < 400;
  return (
    <Badge variant="light" color={isDone ? "teal" : "red"} tt="none">
      {isDone ? "done" : "refused"} ({status})
    </Badge>
  );
}
