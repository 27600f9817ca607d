import type { FlowPulse } from "#/api/overview";

/** Statuses, those that need a look first. */
export const STATUSES = ["failed", "active", "paused", "stopped", "completed"] as const;

type Counts = Partial<Record<string, Partial<Record<string, number>>>>;

/** How many flows of each kind have which status. */
export function statusCounts(flows: Iterable<FlowPulse>): Counts {
  const counts: Counts = {};
  for (const { kind, status } of flows) {
    counts[kind] = { ...counts[kind], [status]: (counts[kind]?.[status] ?? 0) + 1 };
  }
  return counts;
}
