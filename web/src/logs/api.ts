import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, body, type Schemas } from "#/api/client";
import { isSpan, type TimeRange } from "#/components/timeRange";
import type { Level } from "#/flows/logs/lines";

export type LogHit = Schemas["LogHit"];

/** Which lines are wanted; without a flow those of all. */
export interface LogSearch {
  text: string;
  level: Level;
  flow: string | null;
  range: TimeRange;
}

export const SHOWN = 500;

/** The newest lines that match; new ones every few seconds, unless the range has an end. */
export function useLogSearch(search: LogSearch) {
  return useQuery({
    queryKey: ["logs", search],
    queryFn: () => find(search),
    refetchInterval: isSpan(search.range) ? false : 5_000,
    placeholderData: keepPreviousData,
  });
}

function find({ text, level, flow, range }: LogSearch) {
  const iso = (at: number) => new Date(at).toISOString();
  const times = isSpan(range)
    ? { from: iso(range.from), to: iso(range.to) }
    : { from: iso(Date.now() - range.minutes * 60_000) };
  const query = { text, level, flow: flow ?? undefined, limit: SHOWN, ...times };
  return body(api.GET("/logs", { params: { query } }));
}
