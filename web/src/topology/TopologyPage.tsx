import { Alert, Button } from "@mantine/core";
import { useCallback, useMemo, useState } from "react";
import { Link } from "react-router";
import { Allowed } from "#/access/Allowed";
import { usePulse } from "#/api/overview";
import { type Topology, useTopology } from "#/api/topology";
import { Empty, Loading, Page } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { GraphContext, type Shared } from "./GraphContext";
import { GraphView } from "./GraphView";
import { chosen as part, path } from "./graph";
import { insidesOf, troublesOf } from "./insides";
import { ListView } from "./ListView";
import { Toolbar } from "./Toolbar";
import { useChoice } from "./useChoice";

/** More than that nobody can read at once, and browsers become slow. */
const MOST_DRAWN = 600;

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
  const troubles = useTroubles();
  const graph = useMemo(() => part(whole, choice, new Set(troubles.keys())), [whole, choice, troubles]);
  const onlyConnected = useCallback((of: string) => set({ of }), [set]);
  const shared = useMemo((): Shared => {
    const at = looked ?? found;
    return {
      lit: at === null ? null : path(graph.edges, at),
      found,
      troubles,
      insides: choice.ends ? new Map() : insidesOf(whole),
      onlyConnected,
    };
  }, [looked, found, troubles, graph, whole, choice.ends, onlyConnected]);
  return (
    <GraphContext value={shared}>
      <Toolbar {...{ whole, chosen, found, text }} shown={graph} onFind={setFound} onText={setText} />
      {graph.nodes.length === 0 ? (
        <Empty title="No matches" action={<Button onClick={chosen.clear}>Show all</Button>}>
          No document matches the filter.
        </Empty>
      ) : view === "list" ? (
        <ListView graph={graph} text={text} />
      ) : graph.nodes.length > MOST_DRAWN ? (
        <Alert color="blue" title={`Too many documents to draw (${graph.nodes.length})`}>
          Filter by kind, status or label, or use the list view.
        </Alert>
      ) : (
        <GraphView graph={graph} choice={JSON.stringify(choice)} onLook={setLooked} />
      )}
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
