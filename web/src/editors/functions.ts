import { useQuery } from "@tanstack/react-query";
import { api, body, type Schemas } from "#/api/client";

/** A function of Spark SQL, as the server tells it. */
export type SqlFunction = Schemas["FunctionInfo"];

const NONE: SqlFunction[] = [];

/** The functions that SQL may use; none while no worker can tell. Completion is a help, so nothing fails. */
export function useFunctions(enabled: boolean): SqlFunction[] {
  const { data } = useQuery({
    queryKey: ["functions"],
    queryFn: ({ signal }) => body(api.GET("/functions", { signal })).catch(() => NONE),
    enabled,
    retry: false,
    // An empty list is asked for again: a worker may have come meanwhile.
    staleTime: ({ state }) => (state.data?.length ? Number.POSITIVE_INFINITY : 30_000),
  });
  return data ?? NONE;
}
