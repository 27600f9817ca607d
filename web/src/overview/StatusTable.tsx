import { Anchor, Group, Table, Text, Title } from "@mantine/core";
import { Link } from "react-router";
import { KIND_LIST } from "#/api/kinds";
import type { FlowPulse } from "#/api/overview";
import { count } from "#/components/format";
import { StatusBadge } from "#/components/StatusBadge";
import classes from "./overview.module.css";
import { STATUSES, statusCounts } from "./statuses";

/** How many of each kind have which status; each number leads to them. */
export function StatusTable({ flows }: { flows: ReadonlyMap<string, FlowPulse> }) {
  const counts = statusCounts(flows.values());
  const kinds = KIND_LIST.filter(({ name, runs }) => runs && (name === "Pipeline" || counts[name]));
  return (
    <>
      <Group justify="space-between" mb="xs">
        <Title order={2} size="sm">
          Flows by status
        </Title>
        <Text size="xs" c="dimmed">
          {count(flows.size)} in total
        </Text>
      </Group>
      <Table verticalSpacing={6} horizontalSpacing={4} className={classes.numbers}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Status</Table.Th>
            {kinds.map((kind) => (
              <Table.Th key={kind.name} ta="right">
                <Anchor component={Link} to={`/${kind.place}`} size="sm" fw={600}>
                  {kind.title}
                </Anchor>
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {STATUSES.map((status) => (
            <Table.Tr key={status}>
              <Table.Th scope="row" fw={400}>
                {status === "stalled" ? (
                  <StatusBadge status="active" phase="stalled" />
                ) : (
                  <StatusBadge status={status} />
                )}
              </Table.Th>
              {kinds.map((kind) => {
                const number = counts[kind.name]?.[status] ?? 0;
                return (
                  <Table.Td key={kind.name} ta="right">
                    {number === 0 ? (
                      <Text c="dimmed" size="sm">
                        0
                      </Text>
                    ) : (
                      <Anchor
                        component={Link}
                        to={`/${kind.place}?status=${status}`}
                        size="sm"
                        aria-label={`${number} ${status} ${kind.title.toLowerCase()}`}
                      >
                        {count(number)}
                      </Anchor>
                    )}
                  </Table.Td>
                );
              })}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </>
  );
}
