import "@xyflow/react/dist/style.css";
import { useComputedColorScheme } from "@mantine/core";
import { useReducedMotion } from "@mantine/hooks";
import {
  Background,
  Controls,
  MiniMap,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  useStore,
} from "@xyflow/react";
import { type KeyboardEvent, useEffect, useMemo, useRef } from "react";
import { currentPulse } from "#/api/overview";
import type { Topology } from "#/api/topology";
import { DocumentNode, type DocumentNodeType } from "./DocumentNode";
import { useShared } from "./GraphContext";
import { neighbours } from "./graph";
import { NODE_HEIGHT, NODE_WIDTH, type Point, placed } from "./layout";
import { RateEdge, type RateEdgeType } from "./RateEdge";
import { nextKey } from "./steering";
import classes from "./topology.module.css";

const NODE_TYPES = { document: DocumentNode };
const EDGE_TYPES = { rate: RateEdge };
const FIT = {
  padding: { top: "20px", right: "20px", bottom: "24px", left: "64px" },
  maxZoom: 1,
} as const; // the controls are at the left

interface Props {
  graph: Topology;
  /** Something else was chosen: all of it is brought into sight. */
  choice: string;
  onLook: (key: string | null) => void;
}

/** The graph on a canvas. It is laid out again only when other things are in it, not when numbers change. */
export function GraphView(props: Props) {
  return (
    <div className={classes.frame}>
      <ReactFlowProvider>
        <Canvas {...props} />
      </ReactFlowProvider>
    </div>
  );
}

function Canvas({ graph, choice, onLook }: Props) {
  const scheme = useComputedColorScheme("light");
  const { nodes, edges, places } = useElements(graph);
  const far = useStore((store) => store.transform[2] < 0.5);
  const bring = useSight(places, choice);
  const { onEdge } = useShared();
  const steer = (event: KeyboardEvent) => {
    const key = (event.target as HTMLElement).dataset.key;
    const next = key && nextKey(event.key, key, neighbours(graph.edges, key), places);
    if (!next) return;
    event.preventDefault();
    focusNode(event.currentTarget, next);
  };
  return (
    <ReactFlow
      className={classes.canvas}
      data-far={far || undefined}
      onKeyDown={steer}
      onFocus={(event) => {
        const key = (event.target as HTMLElement).dataset.key;
        if (key === undefined) return;
        onLook(key);
        if (event.target.matches(":focus-visible")) bring(key, false);
      }}
      onBlur={() => onLook(null)}
      nodes={nodes}
      edges={edges}
      nodeTypes={NODE_TYPES}
      edgeTypes={EDGE_TYPES}
      colorMode={scheme}
      fitView
      fitViewOptions={FIT}
      minZoom={0.08}
      maxZoom={1.8}
      nodesDraggable={false}
      nodesConnectable={false}
      nodesFocusable={false}
      edgesFocusable={false}
      elementsSelectable={false}
      disableKeyboardA11y
      onlyRenderVisibleElements={nodes.length > 300}
      onNodeMouseEnter={(_, { id }) => onLook(id)}
      onNodeMouseLeave={() => onLook(null)}
      onEdgeClick={(_, { data }) => data && onEdge(data.edge)}
      aria-label="Graph of all documents. Use Tab and the arrow keys to move between documents, Enter to open one."
    >
      <Background gap={24} />
      <Controls showInteractive={false} position="bottom-left" fitViewOptions={FIT} />
      {nodes.length > 40 && (
        <MiniMap
          pannable
          zoomable
          className={classes.minimap}
          nodeClassName={miniClass}
          ariaLabel="Minimap"
        />
      )}
    </ReactFlow>
  );
}

const miniClass = ({ data: { node } }: DocumentNodeType) => {
  const stalled = currentPulse().flows.get(node.key)?.phase === "stalled";
  return stalled || node.status === "failed" ? classes.miniFailed! : classes.miniNode!;
};

function focusNode(within: Element, key: string): void {
  const link = within.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`);
  link?.focus({ preventScroll: true });
}

/** Nodes and edges for the canvas, the same objects for as long as the same things are in the graph. */
function useElements(graph: Topology) {
  const shape = [...graph.nodes.map((node) => node.key), "", ...graph.edges.map((edge) => edge.key)].join(
    "\n",
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` is what of the graph matters here
  const places = useMemo(() => placed(graph), [shape]);
  const nodes = useMemo(
    () =>
      graph.nodes.map(
        (node): DocumentNodeType => ({
          id: node.key,
          type: "document",
          position: places.get(node.key) ?? { x: 0, y: 0 },
          width: NODE_WIDTH,
          height: NODE_HEIGHT,
          data: { node },
        }),
      ),
    [graph, places],
  );
  const edges = useMemo(
    () =>
      graph.edges.map(
        (edge): RateEdgeType => ({
          id: edge.key,
          type: "rate",
          source: edge.from,
          target: edge.to,
          data: { edge },
        }),
      ),
    [graph],
  );
  return { nodes, edges, places };
}

/** Brings a node, or all that was chosen, into sight. */
function useSight(places: ReadonlyMap<string, Point>, choice: string) {
  const { setCenter, fitView, getZoom } = useReactFlow();
  const { found } = useShared();
  const duration = useReducedMotion() ? 0 : 300;
  const latest = useRef(places);
  latest.current = places;
  const bring = (key: string, near: boolean) => {
    const place = latest.current.get(key);
    if (place === undefined) return;
    const zoom = near ? Math.max(getZoom(), 0.9) : getZoom();
    void setCenter(place.x + NODE_WIDTH / 2, place.y + NODE_HEIGHT / 2, { zoom, duration });
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another thing that is searched for moves the sight
  useEffect(() => {
    if (found !== null) bring(found, true);
  }, [found]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another choice moves the sight
  useEffect(() => {
    const frame = requestAnimationFrame(() => void fitView({ ...FIT, duration }));
    return () => cancelAnimationFrame(frame);
  }, [choice]);
  return bring;
}
