import "@xyflow/react/dist/style.css";
import { useComputedColorScheme } from "@mantine/core";
import {
  Background,
  Controls,
  type EdgeTypes,
  type NodeTypes,
  type OnNodeDrag,
  type OnNodesChange,
  ReactFlow,
  ReactFlowProvider,
  type Rect,
  useReactFlow,
  useStore,
  type Viewport,
} from "@xyflow/react";
import { useEffect, useMemo, useState } from "react";
import { BlankNode } from "./BlankNode";
import classes from "./builder.module.css";
import { useBuilder } from "./context";
import { type CanvasNode, type Drag, graphOf, placeAt } from "./graph";
import { PartNode } from "./PartNode";
import { waysOf } from "./references";
import { VerticalContext } from "./Sides";
import { WayEdge } from "./WayEdge";

const NODES: NodeTypes = { part: PartNode, blank: BlankNode };
const EDGES: EdgeTypes = { way: WayEdge };
/** Nodes that cannot be dragged would let clicks pass, too. */
const CLICKABLE = { pointerEvents: "all" } as const;
const MARGIN = 20;
const FIT = { padding: 0.08, minZoom: 0.7, maxZoom: 1, duration: 200 };

/** Input → processors → outputs. */
export function Canvas({ isVertical }: { isVertical: boolean }) {
  return (
    <VerticalContext value={isVertical}>
      <ReactFlowProvider>
        <Flow isVertical={isVertical} />
      </ReactFlowProvider>
    </VerticalContext>
  );
}

function Flow({ isVertical }: { isVertical: boolean }) {
  const builder = useBuilder();
  const { view, place, value, move, select, isStale, selected } = builder;
  const scheme = useComputedColorScheme("light");
  const [drag, setDrag] = useState<(Drag & { id: string; position: { x: number; y: number } }) | null>(null);
  const ways = useMemo(() => waysOf(place, value, view), [place, value, view]);
  const graph = useMemo(() => graphOf(view, ways, isVertical, drag), [view, ways, isVertical, drag]);
  const nodes = useMemo(
    () =>
      graph.nodes.map((node) => ({
        ...node,
        ...(node.id === drag?.id ? { position: drag.position, zIndex: 10 } : {}),
        selected: node.id === selected,
        draggable: node.draggable === true && !isStale,
        style: CLICKABLE,
      })),
    [graph.nodes, drag, selected, isStale],
  );
  useFitting(graph.nodes.length, isVertical, selected);

  // Positions come from the document; the one exception is the node in hand.
  const change: OnNodesChange<CanvasNode> = (changes) => {
    for (const each of changes) {
      if (each.type !== "position" || !each.dragging || !each.position) continue;
      const [group, index] = each.id.split(":") as ["step" | "sink", string];
      const to = placeAt(group, each.position, view, isVertical);
      setDrag({ id: each.id, group, from: Number(index), to, position: each.position });
    }
  };
  const drop: OnNodeDrag<CanvasNode> = () => {
    if (drag && drag.from !== drag.to) move(drag.group, drag.from, drag.to);
    setDrag(null);
  };
  return (
    <ReactFlow
      className={classes.flow}
      aria-label="Pipeline graph"
      colorMode={scheme}
      nodes={nodes}
      edges={graph.edges}
      nodeTypes={NODES}
      edgeTypes={EDGES}
      onNodesChange={change}
      onNodeDragStop={drop}
      onPaneClick={() => select(null)}
      nodesConnectable={false}
      nodesFocusable={false}
      edgesFocusable={false}
      elementsSelectable={false}
      deleteKeyCode={null}
      selectionKeyCode={null}
      multiSelectionKeyCode={null}
      disableKeyboardA11y
      nodeDragThreshold={6}
      nodeOrigin={isVertical ? [0.5, 0.5] : [0, 0.5]}
      minZoom={0.25}
      maxZoom={1.5}
      fitView
      fitViewOptions={FIT}
    >
      <Background gap={20} />
      <Controls
        showInteractive={false}
        fitViewOptions={FIT}
        position={isVertical ? "top-right" : "bottom-left"}
      />
    </ReactFlow>
  );
}

/** Keeps all in view as parts come and go; of what is too long for that, what is selected, or the beginning. */
function useFitting(count: number, isVertical: boolean, selected: string | null): void {
  const { fitView, getNodesBounds, getNodes, setViewport } = useReactFlow();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  // biome-ignore lint/correctness/useExhaustiveDependencies: fits anew when parts come, go or turn
  useEffect(() => {
    const timer = setTimeout(() => {
      const all = getNodesBounds(getNodes());
      const hasRoom = all.width * FIT.minZoom < width && all.height * FIT.minZoom < height;
      const isPart = selected !== null && selected !== "settings";
      if (hasRoom) void fitView(FIT);
      else if (isPart) void fitView({ ...FIT, nodes: [{ id: selected }] });
      else void setViewport(beginning(all, width, height, isVertical));
    }, 80); // after new nodes have been measured
    return () => clearTimeout(timer);
  }, [fitView, getNodesBounds, getNodes, setViewport, count, isVertical, selected, width, height]);
}

function beginning(all: Rect, width: number, height: number, isVertical: boolean): Viewport {
  const zoom = 0.85;
  return isVertical
    ? { zoom, x: width / 2, y: MARGIN - all.y * zoom }
    : { zoom, x: MARGIN - all.x * zoom, y: height / 2 };
}
