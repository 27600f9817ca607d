import { Anchor, Badge, Table, Text } from "@mantine/core";
import { Link } from "react-router";
import { pageOfKey } from "#/api/kinds";
import { moment } from "#/components/format";
import { WideTable } from "#/components/WideTable";
import { shown } from "#/flows/logs/lines";
import type { LogHit } from "./api";

const COLORS: Record<LogHit["level"], string> = {
  debug: "gray",
  info: "blue",
  warning: "orange",
  error: "red",
};

/** Lines of the logs of several flows, newest first; each leads to the log of its flow. */
export function HitTable({ hits }: { hits: readonly LogHit[] }) {
  return (
    <WideTable least={720} verticalSpacing={4} highlightOnHover aria-label="Log lines">
      <Table.Thead>
        <Table.Tr>
          <Table.Th w={170}>Time</Table.Th>
          <Table.Th w={90}>Level</Table.Th>
          <Table.Th w={170}>Flow</Table.Th>
          <Table.Th>Line</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {hits.map((hit, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines may be the same
          <Hit key={place} hit={hit} />
        ))}
      </Table.Tbody>
    </WideTable>
  );
}

function Hit({ hit }: { hit: LogHit }) {
  const where = hit.step ?? hit.sink;
  const fields = Object.entries(hit.fields).filter(([, value]) => value !== null);
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="xs" style={{ whiteSpace: "nowrap" }}>
          {moment(hit.at)}
        </Text>
      </Table.Td>
      <Table.Td>
        <Badge variant="light" size="sm" color={COLORS[hit.level]} tt="none">
          {hit.level}
        </Badge>
      </Table.Td>
      <Table.Td>
        <Anchor component={Link} to={`${pageOfKey(hit.key)}?tab=logs`} size="sm">
          {hit.name}
        </Anchor>
      </Table.Td>
      <Table.Td data-line>
        <Text size="sm" style={{ overflowWrap: "anywhere" }}>
          {where && <b>{where} </b>}
          {hit.message}
          {fields.length > 0 && (
            <Text span size="xs" c="dimmed">
              {" "}
              {fields.map(([name, value]) => `${name}=${shown(value)}`).join(" ")}
            </Text>
          )}
        </Text>
      </Table.Td>
    </Table.Tr>
  );
}
