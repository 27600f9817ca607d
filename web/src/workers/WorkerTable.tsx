import { Anchor, Badge, Code, Group, Table, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";
import { Allowed } from "#/access/Allowed";
import { pageOfKey } from "#/api/kinds";
import type { FlowPulse, Overview } from "#/api/overview";
import { ago, bytes, moment } from "#/components/format";
import { WideTable } from "#/components/WideTable";
import { DrainButton } from "./DrainButton";
import classes from "./workers.module.css";

type Worker = Overview["workers"][number];
type Flows = ReadonlyMap<string, FlowPulse>;

const COLUMNS = ["Worker", "State", "Flows", "CPU", "Memory", "Version", "Spark", "Started", ""];

/** Workers with what they run and what they use. */
export function WorkerTable({ workers, flows }: { workers: readonly Worker[]; flows: Flows }) {
  return (
    <WideTable least={900} withFrame verticalSpacing="sm" tabularNums aria-label="Workers">
      <Table.Thead>
        <Table.Tr>
          {COLUMNS.map((column) => (
            <Table.Th key={column}>{column}</Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {workers.map((worker) => (
          <Row key={worker.id} worker={worker} flows={flows} />
        ))}
      </Table.Tbody>
    </WideTable>
  );
}

function Row({ worker, flows }: { worker: Worker; flows: Flows }) {
  const { id, host, pid, cpu_percent: cpu, memory_bytes: memory } = worker;
  const info = worker.info as Partial<Record<"version" | "spark" | "master" | "spark_ui", string>>;
  return (
    <Table.Tr>
      <Table.Td>
        <Code title={id}>{id.slice(0, 8)}</Code>
        <Text size="sm" c="dimmed">
          {host}, process {pid}
        </Text>
        <Labels labels={worker.labels} />
      </Table.Td>
      <Table.Td>
        <State worker={worker} />
      </Table.Td>
      <Table.Td data-label="Flows">
        <FlowLinks keys={worker.flow_keys} flows={flows} />
        {worker.capacity !== null && (
          <Text size="sm" c="dimmed">
            at most {worker.capacity}
          </Text>
        )}
      </Table.Td>
      <Table.Td data-label="CPU" title="Of one core, with its children">
        {cpu === null ? "–" : `${Math.round(cpu)} %`}
      </Table.Td>
      <Table.Td data-label="Memory" title="With its children">
        {bytes(memory)}
      </Table.Td>
      <Table.Td data-label="Version">{info.version ?? "–"}</Table.Td>
      <Table.Td data-label="Spark">
        {info.spark ?? "–"}
        {info.master && (
          <Text size="sm" c="dimmed" className={classes.master}>
            {info.master}
          </Text>
        )}
        {info.spark_ui && (
          <Anchor href={info.spark_ui} size="sm" target="_blank" rel="noreferrer">
            Spark UI
          </Anchor>
        )}
      </Table.Td>
      <Table.Td data-label="Started" title={moment(worker.started_at)}>
        {ago(worker.started_at)}
      </Table.Td>
      <Table.Td>
        {worker.alive && (worker.state === "ready" || worker.state === "standby") && (
          <Allowed needs="admin">
            <DrainButton worker={id} flows={worker.flow_keys.length} />
          </Allowed>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

function Labels({ labels }: { labels: Worker["labels"] }) {
  const known = Object.entries(labels).sort();
  if (known.length === 0) return null;
  return (
    <Group gap={4} mt={4}>
      {known.map(([name, value]) => (
        <Badge key={name} variant="default" size="sm" tt="none" fw={400}>
          {name}={value}
        </Badge>
      ))}
    </Group>
  );
}

const STATES: Record<string, string> = {
  standby: "Spark is running. It takes over the flows of a worker that is lost.",
  questions: "It takes no flows. It answers test runs, queries, validation and connection tests.",
  draining: "Its flows finish the current batch and move to other workers.",
  drained: "It has no flows and takes none until it is restarted.",
};

function State({ worker: { alive, state } }: { worker: Worker }) {
  const color = !alive ? "red" : state === "ready" ? "teal" : "blue";
  return (
    <Badge variant="light" color={color} tt="none" title={alive ? STATES[state] : "No recent heartbeat."}>
      {alive ? state : "gone"}
    </Badge>
  );
}

const FIRST = 6;

function FlowLinks({ keys, flows }: { keys: readonly string[]; flows: Flows }) {
  const [all, setAll] = useState(false);
  if (keys.length === 0) return <Text c="dimmed">none</Text>;
  const sorted = [...keys].sort();
  return (
    <Group gap="xs" maw={360}>
      {(all ? sorted : sorted.slice(0, FIRST)).map((key) => (
        <Anchor key={key} component={Link} to={pageOfKey(key)} size="sm">
          {flows.get(key)?.name ?? key}
        </Anchor>
      ))}
      {keys.length > FIRST && (
        <Anchor component="button" type="button" size="sm" c="dimmed" onClick={() => setAll(!all)}>
          {all ? "show fewer" : `and ${keys.length - FIRST} more`}
        </Anchor>
      )}
    </Group>
  );
}
