import { Button, Group, Text } from "@mantine/core";
import { useCallback, useMemo, useState } from "react";
import { Link } from "react-router";
import { Allowed } from "#/access/Allowed";
import { usePulse } from "#/api/overview";
import { type Topology, type TopologyEdge, useTopology } from "#/api/topology";
import { Empty, Loading, Page } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { EdgeDrawer } from "./EdgeDrawer";
import { foremost } from "./foremost";
import { GraphContext, type Shared } from "./GraphContext";
import { GraphView } from "./GraphView";
import { chosen as part, path } from "./graph";
import { insidesOf, troublesOf } from "./insides";
import { ListView } from "./ListView";
import { Toolbar } from "./Toolbar";
import { useChoice } from "./useChoice";

/** Nodes of a large graph that are drawn at first, and how many more at a time: more take long to lay out. */
const DRAWN = 100;

/** The whole registry as a live graph, or the same as a list. */
export default function TopologyPage() {
  const { data, error } = useTopology();
  return (
    <Page
      title="Topology"
      about="Live data flow: where events come from, how they are processed and where they go."
    >
      <Failure error={error} title="Could not load the graph" />
      {data === undefined ? (
        !error && <Loading what="Loading the graph" />
      ) : data.nodes.length === 0 ? (
        <Nothing />
      ) : (
        <Graph whole={data} />
      )}
    </Page>
  );
}

function Graph({ whole }: { whole: Topology }) {
  const chosen = useChoice(whole);
  const { choice, view, set } = chosen;
  const [looked, setLooked] = useState<string | null>(null);
  const [found, setFound] = useState<string | null>(null);
  const [text, setText] = useState("");
  const [edge, setEdge] = useState<TopologyEdge | null>(null);
  const [most, setMost] = useState(DRAWN);
  const troubles = useTroubles();
  const graph = useMemo(() => part(whole, choice, new Set(troubles.keys())), [whole, choice, troubles]);
  const drawn = useMemo(() => {
    if (view === "list") return graph;
    const first = foremost(graph, most, new Set(troubles.keys()));
    const isDrawn = found === null || first.nodes.some(({ key }) => key === found);
    return isDrawn ? first : foremost(graph, most, new Set([found, ...troubles.keys()]));
  }, [graph, most, troubles, view, found]);
  const onlyConnected = useCallback((of: string) => set({ of }), [set]);
  const shared = useMemo((): Shared => {
    const at = looked ?? found;
    return {
      lit: at === null ? null : path(graph.edges, at),
      found,
      troubles,
      insides: choice.ends ? new Map() : insidesOf(whole),
      onlyConnected,
      onEdge: setEdge,
    };
  }, [looked, found, troubles, graph, whole, choice.ends, onlyConnected]);
  return (
    <GraphContext value={shared}>
      <Toolbar {...{ whole, graph, chosen, found, text }} shown={drawn} onFind={setFound} onText={setText} />
      {graph.nodes.length === 0 ? (
        <Empty title="No matches" action={<Button onClick={chosen.clear}>Show all</Button>}>
          No document matches the filter.
        </Empty>
      ) : view === "list" ? (
        <ListView graph={graph} text={text} />
      ) : (
        <>
          {drawn.nodes.length < graph.nodes.length && (
            <Group gap="sm">
              <Text size="sm" c="dimmed">
                Documents that need attention, run or are connected are drawn first. Filter, or use the list
                view, to find the others.
              </Text>
              <Button size="compact-sm" variant="default" onClick={() => setMost(most + DRAWN)}>
                Draw {Math.min(DRAWN, graph.nodes.length - drawn.nodes.length)} more
              </Button>
            </Group>
          )}
          <GraphView graph={drawn} choice={`${JSON.stringify(choice)} ${most}`} onLook={setLooked} />
        </>
      )}
      <EdgeDrawer whole={whole} edge={edge} onClose={() => setEdge(null)} />
    </GraphContext>
  );
}

/** What needs attention, the same map for as long as nothing about it changes. */
function useTroubles() {
  const { overview } = usePulse();
  const found = troublesOf(overview?.attention ?? []);
  const written = JSON.stringify([...found]);
  return useMemo(() => new Map(JSON.parse(written) as [string, string[]][]), [written]);
}

function Nothing() {
  return (
    <Empty
      title="No documents yet"
      action={
        <Allowed needs="editor">
          <Button component={Link} to="/pipelines/new">
            Build a pipeline
          </Button>
        </Allowed>
      }
    >
      Sources, streams, tasks, pipelines and sinks appear here with the events that flow between them.
    </Empty>
  );
}
