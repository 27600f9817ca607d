import type { FlowPulse } from "#/api/overview";

/** Statuses, those that need a look first. */
export const STATUSES = ["stalled", "failed", "active", "paused", "stopped", "completed"] as const;

type Counts = Partial<Record<string, Partial<Record<string, number>>>>;

/** How many flows of each kind have which status; those that are stalled are counted apart. */
export function statusCounts(flows: Iterable<FlowPulse>): Counts {
  const counts: Counts = {};
  for (const { kind, status, phase } of flows) {
    const word = status === "active" && phase === "stalled" ? phase : status;
    counts[kind] = { ...counts[kind], [word]: (counts[kind]?.[word] ?? 0) + 1 };
  }
  return counts;
}
