import { useCallback, useSyncExternalStore } from "react";
import { currentPulse, subscribe } from "#/api/overview";
import type { TopologyEdge } from "#/api/topology";
import { rateOf } from "./states";

/** Samples of a trail: one every two seconds, for a minute. */
const LENGTH = 30;

const NONE: readonly number[] = [];

type Trail = readonly number[];
const trails = new Map<string, Trail>();
const users = new Map<string, { edge: TopologyEdge; count: number }>();
let end: (() => void) | null = null;

/** Adds the rate of each edge that is shown to its trail. */
function take(): void {
  const { flows, streams } = currentPulse();
  for (const [key, { edge }] of users) {
    const rate = rateOf(edge, { flow: flows.get(edge.flow), own: streams.get(edge.flow) });
    trails.set(key, grown(trails.get(key) ?? NONE, rate ?? 0));
  }
}

/** A trail with one more rate. One that has been at zero all the time stays empty. */
export function grown(trail: Trail, rate: number): Trail {
  const next = [...trail, rate].slice(-LENGTH);
  return next.some((each) => each > 0) ? next : NONE;
}

/** Counts somebody who shows an edge, until the returned function is called. */
function use(edge: TopologyEdge): () => void {
  users.set(edge.key, { edge, count: (users.get(edge.key)?.count ?? 0) + 1 });
  end ??= subscribe(take);
  return () => {
    const count = (users.get(edge.key)?.count ?? 1) - 1;
    if (count > 0) users.set(edge.key, { edge, count });
    else users.delete(edge.key);
    if (users.size > 0) return;
    end?.();
    end = null;
    trails.clear();
  };
}

/** The rates of an edge over the last minute, for as long as it was shown; empty if nothing passed. */
export function useTrail(edge: TopologyEdge): Trail {
  // biome-ignore lint/correctness/useExhaustiveDependencies: an edge of the same key is the same; another function would begin a new trail
  const follow = useCallback(
    (listener: () => void) => {
      const ends = [use(edge), subscribe(listener)];
      return () => {
        for (const each of ends) each();
      };
    },
    [edge.key],
  );
  return useSyncExternalStore(follow, () => trails.get(edge.key) ?? NONE);
}
