import type { Topology, TopologyEdge, TopologyNode } from "#/api/topology";

/** A graph for tests: `a > b` is an edge, and each name is a node of the kind that it begins with. */
export function graphOf(...ways: string[]): Topology {
  const nodes = new Map<string, TopologyNode>();
  const edges: TopologyEdge[] = [];
  for (const way of ways) {
    const keys = way.split(" > ");
    for (const key of keys) nodes.set(key, nodeOf(key));
    keys.slice(1).forEach((to, place) => {
      edges.push(edgeOf(keys[place]!, to));
    });
  }
  return { nodes: [...nodes.values()], edges };
}

export function nodeOf(key: string, change: Partial<TopologyNode> = {}): TopologyNode {
  const [owner, inner] = key.split("#");
  const [kind, id] = owner!.split("/");
  return {
    key,
    kind: (inner ? (inner === "source" ? "Source" : "Sink") : kind) as TopologyNode["kind"],
    id: inner ?? id!,
    name: inner ?? id!,
    type: inner ? "file" : null,
    status: kind === "Pipeline" && !inner ? "active" : null,
    inline: inner !== undefined,
    owner: inner ? owner! : null,
    labels: {},
    ...change,
  };
}

export function edgeOf(from: string, to: string, change: Partial<TopologyEdge> = {}): TopologyEdge {
  const flow = [from, to].find((key) => key.startsWith("Pipeline/"))?.split("#")[0] ?? from;
  const sink = from === flow ? to.split("/").at(-1)! : null;
  return { key: `${from}>${to}`, from, to, flow, sink, kind: "data", ...change };
}
