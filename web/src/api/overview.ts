import { useSyncExternalStore } from "react";
import type { Schemas } from "./client";

export type Overview = Schemas["Overview"];
export type FlowPulse = Schemas["FlowPulse"];
export type StreamPulse = Schemas["StreamPulse"];
export type Attention = Schemas["Attention"];
export type WorkerStart = Schemas["WorkerStartView"];

/** How everything is right now, as the server tells it every other second. */
export interface Pulse {
  overview: Overview | null;
  flows: ReadonlyMap<string, FlowPulse>;
  streams: ReadonlyMap<string, StreamPulse>;
}

let pulse: Pulse = { overview: null, flows: new Map(), streams: new Map() };
const listeners = new Set<() => void>();

/** Takes the whole, or what has changed since. */
export function takeOverview(overview: Overview, whole: boolean): void {
  const flows = new Map(whole ? [] : pulse.flows);
  const streams = new Map(whole ? [] : pulse.streams);
  for (const flow of overview.flows) flows.set(flow.key, flow);
  for (const stream of overview.streams) streams.set(stream.key, stream);
  for (const key of overview.gone) {
    flows.delete(key);
    streams.delete(key);
  }
  pulse = { overview, flows, streams };
  for (const listener of listeners) listener();
}

/** The last pulse, for those who look at it outside of React. */
export const currentPulse = (): Pulse => pulse;

/** Calls `listener` after every pulse until the returned function is called. */
export function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function usePulse(): Pulse {
  return useSyncExternalStore(subscribe, () => pulse);
}

/** The numbers of one flow, such as `Pipeline/orders`. */
export function useFlowPulse(key: string): FlowPulse | undefined {
  return useSyncExternalStore(subscribe, () => pulse.flows.get(key));
}

/** The numbers of one stream, such as `Stream/orders`. */
export function useStreamPulse(key: string): StreamPulse | undefined {
  return useSyncExternalStore(subscribe, () => pulse.streams.get(key));
}
