import { describe, expect, it } from "vitest";
import type { Value } from "#/documents/editing/yaml";
import { graphOf, placeAt } from "./graph";
import { viewOf } from "./parts";
import { scriptsThatName, waysOf } from "./references";
import { summaryOf } from "./summary";

const VALUE: Value = {
  spec: {
    source: { type: "generate", rate: 5 },
    processors: [
      { type: "sql", query: "-- all\n\nSELECT *\nFROM input" },
      { id: "to", type: "route", rules: [{ when: "a > 1", sinks: ["lake"] }], default: ["copy"] },
      { type: "javascript", inline: "e.$meta.sink = 'lake'" },
    ],
    sinks: [
      { id: "lake", type: "file", path: "out", format: "json", required: false },
      { id: "copy", type: "drop" },
      { ref: "third" },
    ],
  },
};
const view = viewOf("pipelines", VALUE);

describe("the canvas", () => {
  it("has the parts in a row, and the sinks beside each other", () => {
    const { nodes, edges } = graphOf(view, new Map(), false);
    expect(nodes.map((node) => node.id)).toEqual([
      "source",
      "step:0",
      "step:1",
      "step:2",
      "sink:0",
      "sink:1",
      "sink:2",
      "another",
    ]);
    expect(nodes[1]!.position.x).toBeLessThan(nodes[2]!.position.x);
    expect(nodes[4]!.position.x).toBe(nodes[6]!.position.x);
    expect(edges.map((edge) => edge.data?.insertAt)).toEqual([0, 1, 2, 3, undefined, undefined]);
  });

  it("offers the ends that are missing", () => {
    const { nodes, edges } = graphOf(viewOf("pipelines", {}), new Map(), true);
    expect(nodes.map((node) => node.type)).toEqual(["blank", "blank"]);
    expect(edges).toHaveLength(1);
  });

  it.each([true, false])("tells where a part would stand that is let go (vertical: %s)", (isVertical) => {
    const { nodes } = graphOf(view, new Map(), isVertical);
    for (const [group, offset] of [
      ["step", 1],
      ["sink", 4],
    ] as const) {
      for (const index of [0, 1, 2])
        expect(placeAt(group, nodes[index + offset]!.position, view, isVertical)).toBe(index);
    }
    expect(placeAt("step", { x: 1e5, y: 1e5 }, view, isVertical)).toBe(2);
  });

  it("shows the others in their new order while one is dragged", () => {
    const { nodes } = graphOf(view, new Map(), false, { group: "step", from: 0, to: 2 });
    expect(nodes.slice(1, 4).map((node) => node.id)).toEqual(["step:1", "step:2", "step:0"]);
  });
});

describe("what a part says", () => {
  it("is the first line of its code, or its first fields", () => {
    expect(view.steps.map(summaryOf)).toEqual(["SELECT *", "to lake, else copy", "e.$meta.sink = 'lake'"]);
    expect(view.sinks.map(summaryOf)).toEqual(["path: out · format: json", "", "third"]);
  });

  it("is which events a sink gets", () => {
    const ways = waysOf("pipelines", VALUE, view);
    expect([...ways.values()].map((way) => way.label)).toEqual([
      "a > 1",
      "else",
      "no rule selects this sink",
    ]);
    expect(ways.get("third")!.chosen).toBe(false);
    const task = { spec: { outputs: [{ stream: "x", when: "b = 2" }] } };
    expect(waysOf("tasks", task, viewOf("tasks", task)).get("x")!.label).toBe("b = 2");
  });

  it("finds scripts that name a sink", () => {
    expect(scriptsThatName(VALUE.spec!, "lake")).toEqual(["javascript"]);
    expect(scriptsThatName(VALUE.spec!, "copy")).toEqual([]);
  });
});
