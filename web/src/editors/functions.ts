import { useQuery } from "@tanstack/react-query";

/** A function of Spark SQL, as the server tells it. */
export interface SqlFunction {
  name: string;
  usage: string;
  group?: string | null;
  example?: string | null;
}

const NONE: SqlFunction[] = [];

/** The functions that SQL may use; none while no worker can tell. Completion is a help, so nothing fails. */
export function useFunctions(enabled: boolean): SqlFunction[] {
  const { data } = useQuery({
    queryKey: ["functions"],
    queryFn: async ({ signal }) => {
      const answer = await fetch("/functions", { signal });
      return answer.ok ? ((await answer.json()) as SqlFunction[]) : NONE;
    },
    enabled,
    retry: false,
    // An empty list is asked for again: a worker may have come meanwhile.
    staleTime: ({ state }) => (state.data?.length ? Number.POSITIVE_INFINITY : 30_000),
  });
  return data ?? NONE;
}
