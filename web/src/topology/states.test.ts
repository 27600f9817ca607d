import { describe, expect, it } from "vitest";
import type { FlowPulse, StreamPulse } from "#/api/overview";
import { edgeOf } from "./kit";
import { rateOf, stateOf, thickness } from "./states";

const flow = {
  ...{ status: "active", phase: "running", in_rate: 10, out_rate: 7 },
  sinks: [
    { id: "lake", rate: 4, state: "in_sync" },
    { id: "slow", rate: 0, state: "behind" },
  ],
} as FlowPulse;
const stream = (full: string | null) => ({ in_rate: 3, full }) as StreamPulse;
const into = edgeOf("Stream/raw", "Pipeline/a");
const out = edgeOf("Pipeline/a", "Sink/lake");

describe("an edge", () => {
  it("shows what comes into a flow, what a sink gets, or what is sent to a stream", () => {
    expect(rateOf(into, { flow })).toBe(10);
    expect(rateOf(out, { flow })).toBe(4);
    expect(rateOf(edgeOf("Source/s", "Stream/raw"), { own: stream(null) })).toBe(3);
    expect(rateOf({ ...out, kind: "dead_letters" }, { flow })).toBeNull();
  });

  it("is as bad as the worst about it", () => {
    expect(stateOf(into, { flow }, false)).toBe("well");
    expect(stateOf(into, { flow }, true)).toBe("lagging");
    expect(stateOf({ ...out, sink: "slow" }, { flow }, true)).toBe("behind");
    expect(stateOf(out, { flow, into: stream("max_events") }, false)).toBe("full");
    const failed = { ...flow, status: "failed" } as FlowPulse;
    expect(stateOf(out, { flow: failed, into: stream("max_events") }, false)).toBe("failed");
    expect(stateOf(into, { flow: { ...flow, phase: "backing_off" } }, false)).toBe("failed");
    expect(stateOf(into, { flow: { ...flow, phase: "stalled" } }, false)).toBe("failed");
  });

  it("is thicker the more events take it, within bounds", () => {
    expect(thickness(null)).toBe(thickness(0));
    expect(thickness(1000)).toBeGreaterThan(thickness(10));
    expect(thickness(1e12)).toBeLessThan(8);
  });
});
