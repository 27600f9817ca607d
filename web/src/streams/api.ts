import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, body, reach, type Schemas } from "#/api/client";
import type { Kind } from "#/api/kinds";

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

/** Which events a page has: from a position such as `offset:42` on, or the last so many before `to`. */
export interface Where {
  position?: string;
  last?: number;
  to?: string;
  /** A condition, such as `amount > 100`. */
  where?: string;
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

export type Move = Schemas["PositionView"];

/** Moves the position of a flow in its stream, or tells what that would do. */
export function movePosition(kind: Kind, name: string, to: string, dryRun: boolean): Promise<Move> {
  const path = `/${kind.place}/{name}/position` as "/pipelines/{name}/position";
  return body(api.POST(path, { params: { path: { name } }, body: { to, dry_run: dryRun } as never }));
}

/** What a move of the position of a flow would do. Nothing is changed by asking. */
export function useMovePlan(kind: Kind, name: string, to: string) {
  return useQuery({
    queryKey: ["move", kind.place, name, to],
    queryFn: () => movePosition(kind, name, to, true),
    enabled: to !== "",
    retry: false,
    staleTime: 0,
    refetchInterval: 5_000, // a flow that runs moves on
  });
}

/** Moves the position of a flow that reads the stream. */
export function useMove(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ kind, name, to }: { kind: Kind; name: string; to: string }) =>
      movePosition(kind, name, to, false),
    onSettled: () => queries.invalidateQueries({ queryKey: below(id) }),
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
