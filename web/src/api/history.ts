import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { isSpan, type TimeRange } from "#/components/timeRange";
import { api, body, type Schemas } from "./client";
import type { Place } from "./kinds";

/** Numbers over time by column, ready for a chart; null where nothing is known. */
export type History = Schemas["History"];

const NOTHING: History = { step_ms: 2000, at: [], series: {} };

/** The numbers of a flow or stream, or of all together without a place; new ones every few seconds. */
export function useHistory(place: Place | null, id: string | null, range: TimeRange): History {
  const { data } = useQuery({
    queryKey: place === null || id === null ? ["history", range] : ["below", place, id, "history", range],
    queryFn: () => fetchHistory(place, id, range),
    refetchInterval: isSpan(range) ? false : range.minutes <= 15 ? 5_000 : 30_000,
    placeholderData: keepPreviousData,
  });
  return data ?? NOTHING;
}

/** A column of a history; all unknown if it is not there. */
export function column(history: History, name: string): (number | null)[] {
  return history.series[name] ?? history.at.map(() => null);
}

async function fetchHistory(place: Place | null, id: string | null, range: TimeRange): Promise<History> {
  const iso = (at: number) => new Date(at).toISOString();
  const query = isSpan(range) ? { from: iso(range.from), to: iso(range.to) } : range;
  if (place === null || id === null) {
    return body(api.GET("/history", { params: { query } }));
  }
  const path = `/${place}/{name}/history` as "/pipelines/{name}/history";
  return body(api.GET(path, { params: { path: { name: id }, query } }));
}
