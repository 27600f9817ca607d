import type { Topology, TopologyEdge, TopologyNode } from "#/api/topology";
import { components } from "./layout";

/** How urgent it is to see a node: the least first. */
export function urgency(node: TopologyNode, troubles: ReadonlySet<string>): number {
  if (troubles.has(node.key) || node.status === "failed") return 0;
  return node.status === "active" ? 1 : 2;
}

/**
 * The part of a large graph to draw first, about `most` nodes: parts with trouble, then parts that run, then
 * connected ones. Parts stay whole while there is room.
 */
export function foremost(graph: Topology, most: number, troubles: ReadonlySet<string>): Topology {
  if (graph.nodes.length <= most) return graph;
  const parts = components(graph.nodes, graph.edges)
    .map((part) => ({ ...part, urgency: Math.min(...part.nodes.map((node) => urgency(node, troubles))) }))
    .sort((one, other) => one.urgency - other.urgency || other.nodes.length - one.nodes.length);
  const kept = new Set<string>();
  for (const { nodes, edges } of parts) {
    const room = most - kept.size;
    if (room <= 0) break;
    for (const key of nearest(nodes, edges, room, troubles)) kept.add(key);
  }
  return {
    nodes: graph.nodes.filter((node) => kept.has(node.key)),
    edges: graph.edges.filter((edge) => kept.has(edge.from) && kept.has(edge.to)),
  };
}

/** Up to `most` nodes of a connected part: the most urgent ones, then those beside them. */
function nearest(
  nodes: readonly TopologyNode[],
  edges: readonly TopologyEdge[],
  most: number,
  troubles: ReadonlySet<string>,
): string[] {
  if (nodes.length <= most) return nodes.map((node) => node.key);
  const beside = new Map<string, string[]>(nodes.map((node) => [node.key, []]));
  for (const { from, to } of edges) {
    beside.get(from)?.push(to);
    beside.get(to)?.push(from);
  }
  const found = new Set<string>();
  const starts = nodes.toSorted((one, other) => urgency(one, troubles) - urgency(other, troubles));
  for (const { key } of starts) {
    for (const each of [key, ...beside.get(key)!]) {
      if (found.size >= most) return [...found];
      found.add(each);
    }
  }
  return [...found];
}
