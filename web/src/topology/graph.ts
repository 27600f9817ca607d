import type { Topology, TopologyEdge, TopologyNode } from "#/api/topology";

/** What a person has chosen to see. Empty lists choose everything. */
export interface Choice {
  kinds: readonly string[];
  statuses: readonly string[];
  /** `team=web`. */
  labels: readonly string[];
  /** A key: only what is connected to it, directly or not. */
  of: string | null;
  /** Whether ends that are written inside a document are nodes of their own. */
  ends: boolean;
}

/** A graph is easier to read without the ends of every pipeline once it has so many nodes. */
export const CROWDED = 60;

export const labelsOf = (node: TopologyNode): string[] =>
  Object.entries(node.labels).map(([name, value]) => `${name}=${value}`);

/** The part of the graph that was chosen. `attention` holds the keys of what needs some. */
export function chosen(whole: Topology, choice: Choice, attention: ReadonlySet<string>): Topology {
  const graph = choice.ends ? whole : collapsed(whole);
  let kept = new Set(graph.nodes.map((node) => node.key));
  if (choice.statuses.length > 0 || choice.labels.length > 0) {
    const matching = graph.nodes.filter((node) => matches(node, choice, attention));
    kept = withNeighbours(graph, new Set(matching.map((node) => node.key)));
  }
  if (choice.of !== null) kept = intersection(kept, path(graph.edges, choice.of));
  const ofKind = (node: TopologyNode) => choice.kinds.length === 0 || choice.kinds.includes(node.kind);
  const nodes = graph.nodes.filter((node) => kept.has(node.key) && ofKind(node));
  return within(graph, new Set(nodes.map((node) => node.key)));
}

function matches(node: TopologyNode, { statuses, labels }: Choice, attention: ReadonlySet<string>): boolean {
  const named = node.status !== null && statuses.includes(node.status);
  const troubled = statuses.includes("attention") && attention.has(node.key);
  const own = labelsOf(node);
  return (statuses.length === 0 || named || troubled) && labels.every((label) => own.includes(label));
}

/** The graph without ends that are written inside a document: their edges are those of the document. */
export function collapsed({ nodes, edges }: Topology): Topology {
  const owners = new Map(nodes.filter((node) => node.inline).map((node) => [node.key, node.owner]));
  const outer = (key: string) => owners.get(key) ?? key;
  const moved = new Map<string, TopologyEdge>();
  for (const edge of edges) {
    const from = outer(edge.from);
    const to = outer(edge.to);
    if (from === to || (owners.has(from) && owners.get(from) === null)) continue;
    const key = from === edge.from && to === edge.to ? edge.key : `${from}>${to}:${edge.kind}:${edge.flow}`;
    moved.set(key, { ...edge, key, from, to });
  }
  const kept = nodes.filter((node) => !node.inline);
  return within({ nodes: kept, edges: [...moved.values()] }, new Set(kept.map((node) => node.key)));
}

/** The keys of a node and of all that is upstream and downstream of it. */
export function path(edges: readonly TopologyEdge[], key: string): Set<string> {
  return new Set([...reach(edges, key, "from", "to"), ...reach(edges, key, "to", "from")]);
}

type End = "from" | "to";

function reach(edges: readonly TopologyEdge[], key: string, begin: End, end: End): Set<string> {
  const next = new Map<string, string[]>();
  for (const edge of edges) next.set(edge[begin], [...(next.get(edge[begin]) ?? []), edge[end]]);
  const found = new Set([key]);
  const open = [key];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const other of next.get(at) ?? []) {
      if (found.has(other)) continue;
      found.add(other);
      open.push(other);
    }
  }
  return found;
}

/** Those that an arrow key leads to: beside a node in the way of events, or above and below it. */
export function neighbours(
  edges: readonly TopologyEdge[],
  key: string,
): { before: string[]; after: string[] } {
  return {
    before: edges.filter((edge) => edge.to === key).map((edge) => edge.from),
    after: edges.filter((edge) => edge.from === key).map((edge) => edge.to),
  };
}

function withNeighbours({ edges }: Topology, keys: Set<string>): Set<string> {
  const found = new Set(keys);
  for (const { from, to } of edges) {
    if (keys.has(from)) found.add(to);
    if (keys.has(to)) found.add(from);
  }
  return found;
}

function within({ nodes, edges }: Topology, keys: ReadonlySet<string>): Topology {
  return {
    nodes: nodes.filter((node) => keys.has(node.key)),
    edges: edges.filter((edge) => keys.has(edge.from) && keys.has(edge.to)),
  };
}

const intersection = (one: ReadonlySet<string>, other: ReadonlySet<string>) =>
  new Set([...one].filter((key) => other.has(key)));
