import { Graph, layout } from "@dagrejs/dagre";
import type { Topology, TopologyEdge, TopologyNode } from "#/api/topology";
import { CROWDED } from "./graph";

export const NODE_WIDTH = 208;
export const NODE_HEIGHT = 58;

const BETWEEN_RANKS = 110; // room for a rate
const BETWEEN_RANKS_OF_MANY = 60; // rates are not shown from afar
const BETWEEN_NODES = 22;
const BETWEEN_PARTS = 44;

export interface Point {
  x: number;
  y: number;
}

interface Part {
  places: Map<string, Point>;
  width: number;
  height: number;
}

/**
 * Where each node is: events go from left to right. Parts of the graph that have nothing to do with each other
 * are laid out alone and packed, so that the whole has about the shape of the screen (`aspect`).
 */
export function placed({ nodes, edges }: Topology, aspect = 1.7): Map<string, Point> {
  const between = nodes.length > CROWDED ? BETWEEN_RANKS_OF_MANY : BETWEEN_RANKS;
  const parts = components(nodes, edges).map((part) => arranged(part, between));
  if (parts.length === 0) return new Map();
  parts.sort((one, other) => other.height - one.height || other.width - one.width);
  const widest = Math.max(...parts.map((part) => part.width));
  const size = ({ width, height }: Part) => Math.max(width / aspect, height);
  return WIDTHS.map((times) => packed(parts, widest * times)).reduce((best, other) =>
    size(other) < size(best) ? other : best,
  ).places;
}

/** Widths to try, as multiples of the widest part. */
const WIDTHS = [1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 8, 10];

/** Parts within a width, each as high up as it can be, then as far left: beside a tall part there is room for many. */
function packed(parts: readonly Part[], wide: number): Part {
  const places = new Map<string, Point>();
  let skyline = [{ left: 0, right: wide, top: 0 }];
  let width = 0;
  let height = 0;
  for (const part of parts) {
    const spots = skyline
      .map(({ left }) => ({ left, right: left + part.width + BETWEEN_PARTS }))
      .filter(({ left }) => left === 0 || left + part.width <= wide)
      .map(({ left, right }) => {
        const below = skyline.filter((step) => step.right > left && step.left < right);
        return { left, right, top: Math.max(...below.map((step) => step.top)) };
      });
    const spot = spots.reduce((best, other) => (other.top < best.top ? other : best));
    for (const [key, { x, y }] of part.places) places.set(key, { x: spot.left + x, y: spot.top + y });
    width = Math.max(width, spot.left + part.width);
    height = Math.max(height, spot.top + part.height);
    const { left, right } = spot;
    skyline = [
      ...skyline
        .filter((step) => step.left < left)
        .map((step) => ({ ...step, right: Math.min(step.right, left) })),
      { left, right, top: spot.top + part.height + BETWEEN_PARTS },
      ...skyline
        .filter((step) => step.right > right)
        .map((step) => ({ ...step, left: Math.max(step.left, right) })),
    ];
  }
  return { places, width, height };
}

interface Component {
  nodes: TopologyNode[];
  edges: TopologyEdge[];
}

/** The parts of a graph that no edge connects. */
export function components(nodes: readonly TopologyNode[], edges: readonly TopologyEdge[]): Component[] {
  const parents = new Map(nodes.map((node) => [node.key, node.key]));
  const root = (key: string): string => {
    let at = key;
    while (parents.get(at) !== at) {
      parents.set(at, parents.get(parents.get(at)!)!);
      at = parents.get(at)!;
    }
    return at;
  };
  for (const { from, to } of edges) parents.set(root(from), root(to));
  const found = new Map<string, Component>();
  for (const node of nodes) {
    const part = found.get(root(node.key)) ?? { nodes: [], edges: [] };
    part.nodes.push(node);
    found.set(root(node.key), part);
  }
  for (const edge of edges) found.get(root(edge.from))!.edges.push(edge);
  return [...found.values()];
}

function arranged({ nodes, edges }: Component, between: number): Part {
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", ranksep: between, nodesep: BETWEEN_NODES });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { key } of nodes) graph.setNode(key, { width: NODE_WIDTH, height: NODE_HEIGHT });
  for (const { from, to } of edges) graph.setEdge(from, to);
  layout(graph);
  const places = new Map<string, Point>();
  for (const { key } of nodes) {
    const { x, y } = graph.node(key) as Point;
    places.set(key, { x: x - NODE_WIDTH / 2, y: y - NODE_HEIGHT / 2 });
  }
  const { width = NODE_WIDTH, height = NODE_HEIGHT } = graph.graph();
  return { places, width, height };
}
