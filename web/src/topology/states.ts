import type { FlowPulse, StreamPulse } from "#/api/overview";
import type { TopologyEdge } from "#/api/topology";

/** How an edge is, the worst first. */
export type EdgeState = "failed" | "full" | "behind" | "lagging" | "well";

export const EDGE_STATES: Record<EdgeState, string> = {
  failed: "failed, stalled or being retried",
  full: "backpressure: the stream is full and producers are blocked",
  behind: "the sink has missed batches",
  lagging: "falling behind: more events arrive than are processed",
  well: "healthy",
};

interface Numbers {
  flow?: FlowPulse;
  /** The stream that the edge leads to. */
  into?: StreamPulse;
  /** The stream that no flow but its producers fill, if the edge shows that. */
  own?: StreamPulse;
}

/** Events per second along an edge; null where nobody counts them. */
export function rateOf(edge: TopologyEdge, { flow, own }: Numbers): number | null {
  if (edge.kind !== "data") return null;
  if (own !== undefined) return own.in_rate;
  if (flow === undefined) return null;
  if (edge.sink === null) return flow.in_rate;
  return flow.sinks.find((sink) => sink.id === edge.sink)?.rate ?? flow.out_rate;
}

const BROKEN = new Set(["backing_off", "stalled"]);

/** How an edge is. `growing`: the lag of its flow grows. */
export function stateOf(edge: TopologyEdge, { flow, into, own }: Numbers, growing: boolean): EdgeState {
  if (edge.kind !== "data") return "well";
  if (flow?.status === "failed" || (flow?.status === "active" && BROKEN.has(flow.phase))) return "failed";
  if ((into ?? own)?.full) return "full";
  const sink = flow?.sinks.find((each) => each.id === edge.sink);
  if (sink?.state === "failing") return "failed";
  if (sink?.state === "behind" || sink?.state === "catching_up") return "behind";
  return growing && edge.sink === null ? "lagging" : "well";
}

/** How thick the line of a rate is: each ten times more is as much thicker. */
export function thickness(rate: number | null): number {
  return 1.25 + Math.min(5.5, Math.log10(1 + (rate ?? 0)) * 1.3);
}
