import { Anchor, Drawer, Group, Stack, Text } from "@mantine/core";
import { Link, useNavigate } from "react-router";
import { pageOfKey } from "#/api/kinds";
import { useFlowPulse, useStreamPulse } from "#/api/overview";
import { streamOfEdge, type Topology, type TopologyEdge } from "#/api/topology";
import { plural, rate } from "#/components/format";
import { RecentEvents } from "#/flows/RecentEvents";
import { rateOf } from "./states";

interface Props {
  whole: Topology;
  /** Null: no edge is open. */
  edge: TopologyEdge | null;
  onClose: () => void;
}

/** What passes along an edge: how much, and the last events. */
export function EdgeDrawer({ whole, edge, onClose }: Props) {
  const name = (key: string) => whole.nodes.find((node) => node.key === key)?.name ?? key;
  return (
    <Drawer
      opened={edge !== null}
      onClose={onClose}
      position="right"
      size="lg"
      title={edge && `${name(edge.from)} → ${name(edge.to)}`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {edge && <Body key={edge.key} whole={whole} edge={edge} />}
    </Drawer>
  );
}

function Body({ whole, edge }: { whole: Topology; edge: TopologyEdge }) {
  const navigate = useNavigate();
  const flow = useFlowPulse(edge.flow);
  const own = useStreamPulse(edge.flow);
  const stream = streamOfEdge(whole, edge);
  const perSecond = rateOf(edge, { flow, own });
  const traced = flow && stream && isTraced(whole, edge, stream) ? pageOfKey(edge.flow) : null;
  return (
    <Stack>
      <Group gap="md">
        {perSecond !== null && <Text size="sm">{rate(perSecond)} now</Text>}
        {flow?.lag_events != null && edge.sink === null && (
          <Text size="sm">{plural(flow.lag_events, "event")} waiting</Text>
        )}
        {flow && (
          <Anchor component={Link} to={pageOfKey(edge.flow)} size="sm">
            Open {flow.name}
          </Anchor>
        )}
      </Group>
      {stream === null ? (
        <Text size="sm" c="dimmed">
          These events aren't kept in a stream, so they can't be read again.
        </Text>
      ) : (
        <>
          {!edge.from.endsWith(`/${stream}`) && !edge.to.endsWith(`/${stream}`) && (
            <Text size="sm" c="dimmed">
              Events at this place aren't kept. These are the last events of the input of the flow.
            </Text>
          )}
          <RecentEvents
            stream={stream}
            onPick={traced ? (offset) => navigate(`${traced}?tab=story&offset=${offset}`) : undefined}
          />
        </>
      )}
    </Stack>
  );
}

/** Whether events of a stream can be traced through the flow of an edge: it reads them and has steps. */
function isTraced(whole: Topology, edge: TopologyEdge, stream: string): boolean {
  const steps = /^(Pipeline|Task)\//.test(edge.flow);
  return steps && whole.edges.some(({ from, to }) => from === `Stream/${stream}` && to === edge.flow);
}
