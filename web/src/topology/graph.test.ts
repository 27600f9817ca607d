import { describe, expect, it } from "vitest";
import { type Choice, chosen, collapsed, path } from "./graph";
import { insidesOf, troublesOf } from "./insides";
import { edgeOf, graphOf, nodeOf } from "./kit";
import { rowsOf } from "./ListView";
import { components, NODE_HEIGHT, NODE_WIDTH, placed } from "./layout";
import { nextKey } from "./steering";

const ALL: Choice = { kinds: [], statuses: [], labels: [], of: null, ends: true };
const GRAPH = graphOf(
  "Source/clicks > Stream/raw > Pipeline/clean > Stream/good > Pipeline/export > Pipeline/export#sinks/lake",
  "Pipeline/other#source > Pipeline/other > Pipeline/other#sinks/out",
);
const NONE = new Set<string>();
const keys = (choice: Partial<Choice>, attention = NONE) =>
  chosen(GRAPH, { ...ALL, ...choice }, attention).nodes.map((node) => node.key);

describe("what is shown of a graph", () => {
  it("is everything, unless somebody chooses", () => {
    expect(chosen(GRAPH, ALL, NONE)).toEqual(GRAPH);
  });

  it("can leave out the ends inside pipelines; no edge leads nowhere", () => {
    const { nodes, edges } = collapsed(GRAPH);
    expect(nodes.every((node) => !node.inline)).toBe(true);
    expect(edges.map(({ from, to }) => `${from}>${to}`)).not.toContain("Pipeline/other>Pipeline/other");
    expect(edges).toHaveLength(4);
    expect(insidesOf(GRAPH).get("Pipeline/other")).toBe("file → file");
  });

  it("joins documents whose connection was an end inside one of them", () => {
    const held = nodeOf("Stream/in", { inline: true, owner: "Pipeline/a" });
    const graph = {
      nodes: [nodeOf("Source/s"), held, nodeOf("Pipeline/a")],
      edges: [edgeOf("Source/s", "Stream/in"), edgeOf("Stream/in", "Pipeline/a")],
    };
    expect(collapsed(graph).edges.map(({ from, to }) => [from, to])).toEqual([["Source/s", "Pipeline/a"]]);
  });

  it("is what is connected to one, up- and downstream", () => {
    expect(keys({ of: "Stream/good" })).toEqual(GRAPH.nodes.slice(0, 6).map((node) => node.key));
    expect(path(GRAPH.edges, "Pipeline/other").size).toBe(3);
  });

  it("survives a circle", () => {
    const round = graphOf("Stream/a > Pipeline/b > Stream/a");
    expect(path(round.edges, "Stream/a")).toEqual(new Set(["Stream/a", "Pipeline/b"]));
    expect(placed(round).size).toBe(2);
  });

  it("is of a kind, or has a status or needs attention, with what is beside it", () => {
    expect(keys({ kinds: ["Stream"] })).toEqual(["Stream/raw", "Stream/good"]);
    expect(keys({ statuses: ["attention"] }, new Set(["Pipeline/clean"]))).toEqual([
      "Stream/raw",
      "Pipeline/clean",
      "Stream/good",
    ]);
    expect(keys({ labels: ["team=web"] })).toEqual([]);
  });

  it("says why something needs attention, notes aside", () => {
    const item = { code: "failed", key: "Pipeline/a", severity: "error" } as never;
    const note = { code: "invalid", key: "Pipeline/b", severity: "info" } as never;
    expect([...troublesOf([item, note])]).toEqual([["Pipeline/a", ["failed"]]]);
  });
});

describe("layout", () => {
  const many = graphOf(
    ...Array.from(
      { length: 50 },
      (_, at) => `Stream/a${at} > Pipeline/b${at} > Stream/c${at} > Pipeline/d${at}`,
    ),
  );

  it("lets no two nodes overlap, and has about the shape of a screen", () => {
    const places = [...placed(many).values()];
    expect(places).toHaveLength(200);
    for (const [at, one] of places.entries()) {
      for (const other of places.slice(at + 1)) {
        const apart = Math.abs(one.x - other.x) >= NODE_WIDTH || Math.abs(one.y - other.y) >= NODE_HEIGHT;
        expect(apart).toBe(true);
      }
    }
    const shape = Math.max(...places.map(({ x }) => x)) / Math.max(...places.map(({ y }) => y));
    expect(shape).toBeGreaterThan(1);
    expect(shape).toBeLessThan(3);
  });

  it("leads events from left to right", () => {
    const places = placed(GRAPH);
    for (const { from, to } of GRAPH.edges) expect(places.get(from)!.x).toBeLessThan(places.get(to)!.x);
  });

  it("finds what has nothing to do with each other", () => {
    expect(components(GRAPH.nodes, GRAPH.edges).map((part) => part.nodes.length)).toEqual([6, 3]);
  });

  it("is walked with the arrow keys", () => {
    const places = new Map([
      ["a", { x: 0, y: 0 }],
      ["b", { x: 300, y: 0 }],
      ["c", { x: 0, y: 80 }],
      ["d", { x: 0, y: 160 }],
    ]);
    const beside = { before: [], after: ["d", "b"] };
    expect(nextKey("ArrowRight", "a", beside, places)).toBe("b");
    expect(nextKey("ArrowLeft", "a", beside, places)).toBeNull();
    expect(nextKey("ArrowDown", "a", beside, places)).toBe("c");
    expect(nextKey("ArrowUp", "d", beside, places)).toBe("c");
    expect(nextKey("Enter", "a", beside, places)).toBeNull();
  });
});

describe("the list", () => {
  it("says where events come from and go to", () => {
    const [row] = rowsOf(GRAPH, "clean");
    expect(row?.node.key).toBe("Pipeline/clean");
    expect(row?.from.map(({ name }) => name)).toEqual(["raw"]);
    expect(row?.to.map(({ name }) => name)).toEqual(["good"]);
    expect(rowsOf(GRAPH, "")[0]?.node.kind).toBe("Source");
  });
});
