import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, body, reach, type Schemas } from "#/api/client";

export type Stats = Schemas["StatsView"];
export type Reader = Schemas["ReaderView"];
export type EventPage = Schemas["EventsView"];
export type Gap = Schemas["GapView"];

/** An event as it is shown: raw with a `value`, typed with `columns`. */
export interface StreamEvent {
  offset: number;
  time: string;
  key: unknown;
  headers: Record<string, unknown>;
  value?: unknown;
  columns?: Record<string, unknown>;
}

const below = (id: string, ...rest: unknown[]) => ["below", "streams", id, ...rest] as const;

/** The numbers of a stream, new every few seconds. */
export function useStats(id: string) {
  return useQuery({
    queryKey: below(id, "stats"),
    queryFn: () => body(api.GET("/streams/{name}/stats", { params: { path: { name: id } } })),
    refetchInterval: 3_000,
  });
}

/** Where a page of events begins: a position such as `offset:42`, or the last so many. */
export interface Where {
  position?: string;
  last?: number;
  limit: number;
}

export function useEvents(id: string, where: Where) {
  return useQuery({
    queryKey: below(id, "events", where),
    queryFn: () => body(api.GET("/streams/{name}/events", { params: { path: { name: id }, query: where } })),
    placeholderData: keepPreviousData,
    staleTime: 0,
  });
}

/** Forgets a reader that is gone: nothing is kept for it any more. */
export function useForget(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (reader: string) =>
      body(api.DELETE("/streams/{name}/readers/{reader}", { params: { path: { name: id, reader } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: below(id) }),
  });
}

export type Accepted = Schemas["Accepted"];

/** Appends one event; nothing is kept of one that does not fit. */
export function useProduce(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (event: Omit<StreamEvent, "offset" | "time">) => {
      const sent = reach(`/streams/${encodeURIComponent(id)}/events?atomic=true`, {
        method: "POST",
        headers: { "Content-Type": "application/vnd.penstock.events+json" },
        body: JSON.stringify([event]),
      }).then(async (response) => {
        const data = await response.json().catch(() => undefined);
        return { data: data as Accepted, error: data, response };
      });
      return body(sent);
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: below(id) }),
  });
}
