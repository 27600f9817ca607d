import { describe, expect, it } from "vitest";
import { inputStream, streamOfEdge } from "#/api/topology";
import { foremost } from "./foremost";
import { edgeOf, graphOf, nodeOf } from "./kit";
import { rowsOf } from "./ListView";
import { grown } from "./trails";

const many = (count: number, kind = "Stream") =>
  Array.from({ length: count }, (_, place) => nodeOf(`${kind}/lone${place}`));
const keysOf = ({ nodes }: { nodes: { key: string }[] }) => nodes.map((node) => node.key);

describe("what is drawn first of a large graph", () => {
  const running = graphOf("Stream/a > Pipeline/runs > Stream/b");
  const troubled = graphOf("Stream/c > Pipeline/broken");
  const paused = graphOf("Stream/d > Pipeline/rests > Stream/e");
  paused.nodes = paused.nodes.map((node) => ({ ...node, status: node.status && "paused" }));
  const graph = {
    nodes: [...many(2000), ...paused.nodes, ...running.nodes, ...troubled.nodes],
    edges: [...paused.edges, ...running.edges, ...troubled.edges],
  };
  const troubles = new Set(["Pipeline/broken"]);

  it("is what has trouble, then what runs, then what is connected", () => {
    expect(keysOf(foremost(graph, 2, troubles))).toEqual(keysOf(troubled));
    expect(keysOf(foremost(graph, 5, troubles))).toEqual(
      keysOf({ nodes: [...running.nodes, ...troubled.nodes] }),
    );
    const some = keysOf(foremost(graph, 10, troubles));
    expect(some).toHaveLength(10);
    expect(some).toEqual(expect.arrayContaining(keysOf(paused)));
  });

  it("is all of a small one", () => {
    expect(foremost(running, 10, troubles)).toBe(running);
  });

  it("is what is around the trouble if all is connected", () => {
    const chain = graphOf(Array.from({ length: 50 }, (_, place) => `Stream/s${place}`).join(" > "));
    const found = keysOf(foremost(chain, 5, new Set(["Stream/s30"])));
    expect(found).toHaveLength(5);
    expect(found).toEqual(expect.arrayContaining(["Stream/s29", "Stream/s30", "Stream/s31"]));
  });

  it("is first in the list too", () => {
    expect(rowsOf(graph, "", troubles)[0]!.node.key).toBe("Pipeline/broken");
  });
});

describe("the events of an edge", () => {
  const graph = graphOf("Stream/in > Pipeline/p > Pipeline/p#sinks/lake", "Pipeline/g#source > Pipeline/g");

  it("are those of its stream, else of the input of its flow", () => {
    expect(inputStream(graph, "Pipeline/p")).toBe("in");
    expect(streamOfEdge(graph, edgeOf("Stream/in", "Pipeline/p"))).toBe("in");
    expect(streamOfEdge(graph, edgeOf("Pipeline/p", "Stream/out"))).toBe("out");
    expect(streamOfEdge(graph, edgeOf("Pipeline/p", "Pipeline/p#sinks/lake"))).toBe("in");
    expect(streamOfEdge(graph, edgeOf("Pipeline/g#source", "Pipeline/g"))).toBeNull();
  });
});

describe("the trail of an edge", () => {
  it("has the last minute, and nothing while nothing passes", () => {
    expect(grown([], 0)).toEqual([]);
    expect(grown([], 3)).toEqual([3]);
    expect(grown([3], 0)).toEqual([3, 0]);
    expect(grown(Array(30).fill(1), 2)).toHaveLength(30);
  });
});
