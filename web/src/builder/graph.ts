import type { Edge, Node } from "@xyflow/react";
import type { Spot } from "./edges/passing";
import type { Part, View } from "./parts";
import type { Way } from "./references";

/** What a node of the canvas shows: a part, or the place of one that is still to be chosen. */
export type PartNode = Node<{ part: Part; way?: Way }, "part">;
export type BlankNode = Node<{ role: "source" | "sink"; label: string }, "blank">;
export type CanvasNode = PartNode | BlankNode;

/** An edge; with `insertAt`, a step can be put there. */
export type CanvasEdge = Edge<
  {
    insertAt?: number;
    after: string;
    isDashed?: boolean;
    isFork?: boolean;
    /** What events pass there; absent while there is no input. */
    spot?: Spot;
  },
  "way"
>;

export const WIDTH = 200;
export const HEIGHT = 92;
const GAP = 92;
const BESIDE = 22;

/** A step or a sink that is being dragged, and where it would stand if it were let go now. */
export interface Drag {
  group: "step" | "sink";
  from: number;
  to: number;
}

/** Where the parts of a document are on the canvas: in a row, or one below the other. */
export function graphOf(
  view: View,
  ways: ReadonlyMap<string, Way>,
  isVertical: boolean,
  drag: Drag | null = null,
): { nodes: CanvasNode[]; edges: CanvasEdge[] } {
  const steps = drag?.group === "step" ? reordered(view.steps, drag) : view.steps;
  const sinks = drag?.group === "sink" ? reordered(view.sinks, drag) : view.sinks;
  const place = (along: number, across: number) =>
    isVertical
      ? { x: across * (WIDTH + BESIDE), y: along * (HEIGHT + GAP) }
      : { x: along * (WIDTH + GAP), y: across * (HEIGHT + BESIDE) };

  const first: CanvasNode = view.source
    ? partNode(view.source, place(0, 0))
    : {
        id: "source",
        type: "blank",
        position: place(0, 0),
        data: { role: "source", label: "Choose an input" },
      };
  const last = steps.length + 1;
  const middle = Math.max(0, sinks.length - 1) / 2;
  const nodes: CanvasNode[] = [
    first,
    ...steps.map((part, i) => partNode(part, place(i + 1, 0))),
    ...sinks.map((part, i) => partNode(part, place(last, i - middle), ways.get(part.id))),
    {
      id: "another",
      type: "blank",
      position: place(last, sinks.length === 0 ? 0 : sinks.length - middle),
      data: { role: "sink", label: sinks.length === 0 ? "Choose an output" : "Add an output" },
    },
  ];
  return { nodes, edges: edgesOf(view.source, steps, sinks, ways) };
}

function edgesOf(
  source: Part | null,
  steps: Part[],
  sinks: Part[],
  ways: ReadonlyMap<string, Way>,
): CanvasEdge[] {
  const chain = ["source", ...steps.map((part) => part.key)];
  const spot = (place: number, sink: Part | null): Spot | undefined => {
    const after = place === 0 ? source : steps[place - 1]!;
    return after ? { after, sink } : undefined;
  };
  const names = ["the input", ...steps.map((part) => part.id)];
  const end = chain.at(-1)!;
  const edges: CanvasEdge[] = chain.slice(1).map((key, i) => ({
    id: `${chain[i]}-${key}`,
    type: "way",
    source: chain[i]!,
    target: key,
    data: { insertAt: i, after: names[i]!, spot: spot(i, null) },
  }));
  const targets = sinks.length > 0 ? sinks.map((part) => part.key as string) : ["another"];
  targets.forEach((key, i) => {
    const way = ways.get(sinks[i]?.id ?? "");
    edges.push({
      id: `${end}-${key}`,
      type: "way",
      source: end,
      target: key,
      data: {
        ...(i === 0 ? { insertAt: steps.length, isFork: targets.length > 1 } : {}),
        after: names.at(-1)!,
        isDashed: sinks.length === 0 || way?.chosen === false,
        spot: spot(steps.length, sinks[i] ?? null),
      },
    });
  });
  return edges;
}

const partNode = (part: Part, position: { x: number; y: number }, way?: Way): PartNode => ({
  id: part.key,
  type: "part",
  position,
  data: { part, way },
  draggable: part.group !== "source",
});

function reordered(parts: Part[], { from, to }: Drag): Part[] {
  const next = [...parts];
  next.splice(to, 0, ...next.splice(from, 1));
  return next;
}

/** Where in its list a node would stand that was dragged to a position. */
export function placeAt(
  group: "step" | "sink",
  position: { x: number; y: number },
  view: View,
  isVertical: boolean,
): number {
  const along = isVertical ? position.y / (HEIGHT + GAP) : position.x / (WIDTH + GAP);
  const across = isVertical ? position.x / (WIDTH + BESIDE) : position.y / (HEIGHT + BESIDE);
  const count = group === "step" ? view.steps.length : view.sinks.length;
  const place = group === "step" ? along - 1 : across + (count - 1) / 2;
  return Math.min(count - 1, Math.max(0, Math.round(place)));
}
