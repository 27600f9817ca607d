import { Anchor, Button, Group, Stack, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { Fragment, useMemo, useState } from "react";
import { Link } from "react-router";
import { KIND_LIST, pageOfKey } from "#/api/kinds";
import { useFlowPulse, useStreamPulse } from "#/api/overview";
import type { Topology, TopologyNode } from "#/api/topology";
import { Empty } from "#/components/Page";
import { urgency } from "./foremost";
import { useShared } from "./GraphContext";
import { KIND_ICONS } from "./kindIcons";
import { NodeStatus } from "./NodeStatus";
import { detailOf } from "./numbers";
import classes from "./topology.module.css";

const PAGE = 100;
const ORDER = ["Source", "Stream", "Task", "Pipeline", "Sink"];

/** The graph in words: each document with where its events come from and where they go. */
export function ListView({ graph, text }: { graph: Topology; text: string }) {
  const [most, setMost] = useState(PAGE);
  const { troubles } = useShared();
  const rows = useMemo(() => rowsOf(graph, text, new Set(troubles.keys())), [graph, text, troubles]);
  if (rows.length === 0) return <Empty title="No matches">Try part of a name or a kind.</Empty>;
  return (
    <Stack gap="sm">
      <ul className={classes.list} aria-label="Documents and their connections">
        {rows.slice(0, most).map((row) => (
          <Row key={row.node.key} {...row} />
        ))}
      </ul>
      {rows.length > most && (
        <Button variant="default" onClick={() => setMost(most + PAGE)}>
          Show more ({rows.length - most} left)
        </Button>
      )}
    </Stack>
  );
}

interface RowData {
  node: TopologyNode;
  from: TopologyNode[];
  to: TopologyNode[];
}

/** The nodes whose name, kind or type has the text: the most urgent first, then in the order of the way of events. */
export function rowsOf(
  { nodes, edges }: Topology,
  text: string,
  troubles: ReadonlySet<string> = new Set(),
): RowData[] {
  const byKey = new Map(nodes.map((node) => [node.key, node]));
  const wanted = text.trim().toLowerCase();
  const rows = new Map(nodes.map((node) => [node.key, { node, from: [], to: [] } as RowData]));
  for (const edge of edges) {
    rows.get(edge.from)?.to.push(byKey.get(edge.to)!);
    rows.get(edge.to)?.from.push(byKey.get(edge.from)!);
  }
  return [...rows.values()]
    .filter(({ node }) =>
      `${node.name} ${node.id} ${node.kind} ${node.type ?? ""}`.toLowerCase().includes(wanted),
    )
    .sort(
      ({ node: one }, { node: other }) =>
        Number(urgency(one, troubles) > 0) - Number(urgency(other, troubles) > 0) ||
        ORDER.indexOf(one.kind) - ORDER.indexOf(other.kind) ||
        one.name.localeCompare(other.name),
    );
}

function Row({ node, from, to }: RowData) {
  const { troubles, insides } = useShared();
  const flow = useFlowPulse(node.key);
  const stream = useStreamPulse(node.key);
  const Icon = KIND_ICONS[node.kind];
  return (
    <li className={classes.row}>
      <Group gap={10} wrap="nowrap">
        <Icon size={20} stroke={1.6} className={classes.icon} aria-hidden />
        <Group gap="xs" miw={0} flex={1}>
          <To node={node} fw={600} />
          <Text size="sm" c="dimmed">
            {KIND_LIST.find((kind) => kind.name === node.kind)?.one}
          </Text>
          <span className={classes.detail}>
            {troubles.has(node.key) && (
              <IconAlertTriangle size={13} className={classes.alarm} aria-label="needs attention" />
            )}
            <NodeStatus status={flow?.status ?? node.status} phase={flow?.phase} />
            {detailOf(node, flow, stream, insides.get(node.key))}
          </span>
        </Group>
      </Group>
      {from.length + to.length > 0 && (
        <dl className={classes.ways}>
          <Way word="from" nodes={from} />
          <Way word="to" nodes={to} />
        </dl>
      )}
    </li>
  );
}

function Way({ word, nodes }: { word: string; nodes: TopologyNode[] }) {
  if (nodes.length === 0) return null;
  return (
    <>
      <dt>{word}</dt>
      <dd>
        {nodes.map((node, place) => (
          <Fragment key={node.key}>
            {place > 0 && ", "}
            <To node={node} />
          </Fragment>
        ))}
      </dd>
    </>
  );
}

const To = ({ node, fw }: { node: TopologyNode; fw?: number }) => (
  <Anchor component={Link} to={pageOfKey(node.owner ?? node.key)} size="sm" fw={fw}>
    {node.name}
  </Anchor>
);
