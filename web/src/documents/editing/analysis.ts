import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, body, type Problem, problemsOf, type Schemas } from "#/api/client";
import type { Kind } from "#/api/kinds";
import type { Value } from "#/builder/yaml";

type Analysis = Schemas["Analysis"];

/** What the server thinks of a document as it is now. */
export interface Opinion {
  errors: Problem[];
  warnings: Problem[];
  id: string | null;
  guarantee: string | null;
  isValid: boolean;
  isChecking: boolean;
}

const PAUSE_MS = 400;
const NONE: Problem[] = [];

/** Asks about a document as it is typed; the answer to the latest text wins. */
export function useOpinion(kind: Kind, value: Value): Opinion {
  const now = useMemo(() => JSON.stringify({ ...value, kind: kind.name }), [kind, value]);
  const [asked] = useDebouncedValue(now, PAUSE_MS);
  const { data, error, isFetching } = useQuery({
    queryKey: ["validate", asked],
    queryFn: async ({ signal }): Promise<Analysis> => {
      const answer = await body(api.POST("/validate", { body: JSON.parse(asked) as never, signal }));
      return answer.documents[0]!;
    },
    placeholderData: keepPreviousData,
    retry: false,
    gcTime: 30_000,
  });
  const isChecking = now !== asked || isFetching;
  const errors = useMemo(() => (error ? problemsOf(error) : (data?.errors ?? NONE)), [data, error]);
  return {
    errors,
    warnings: data?.warnings ?? NONE,
    id: data?.id ?? null,
    guarantee: data?.guarantee ?? null,
    isValid: !isChecking && !error && (data?.valid ?? false),
    isChecking,
  };
}
