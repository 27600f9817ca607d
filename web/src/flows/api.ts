import { useQuery } from "@tanstack/react-query";
import { api, body, type Schemas } from "#/api/client";
import type { Kind } from "#/api/kinds";

export type SinkInfo = Schemas["SinkInfo"];
export type Letter = Schemas["LetterView"];
export type Replay = Schemas["ReplayView"];

/** The same path below another kind. All that run have the same routes; pipelines have all of them. */
export function below<P extends `/pipelines/{name}${string}`>(kind: Kind, path: P): P {
  return path.replace("/pipelines", `/${kind.place}`) as P;
}

/** The key of a query about something below a document: its events make it be asked again. */
export const belowKey = (kind: Kind, id: string, ...rest: unknown[]) =>
  ["below", kind.place, id, ...rest] as const;

/** The sinks of a flow, and how each is. */
export function useSinks(kind: Kind, id: string, { enabled = true } = {}) {
  return useQuery({
    queryKey: belowKey(kind, id, "sinks"),
    queryFn: () => body(api.GET(below(kind, "/pipelines/{name}/sinks"), { params: { path: { name: id } } })),
    enabled,
    refetchInterval: 3_000,
  });
}

/** The replays of a flow, newest first; asked again while one of them is under way. */
export function useReplays(kind: Kind, id: string, { enabled = true } = {}) {
  return useQuery({
    queryKey: belowKey(kind, id, "replays"),
    queryFn: () =>
      body(api.GET(below(kind, "/pipelines/{name}/replays"), { params: { path: { name: id } } })),
    enabled: enabled && canReplay(kind),
    refetchInterval: (query) => (query.state.data?.some((each) => each.status === "active") ? 2_000 : false),
  });
}

/** Whether flows of a kind read streams, from which events can be taken once more. */
export const canReplay = (kind: Kind) => kind.name === "Pipeline" || kind.name === "Task";
