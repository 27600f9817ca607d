import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, body, type Problem, problemsOf, type Schemas } from "#/api/client";
import { parse } from "#/api/json";
import { KINDS, type Kind } from "#/api/kinds";
import type { Value } from "./yaml";

type Analysis = Schemas["Analysis"];

/** What the server thinks of a document as it is now. */
export interface Opinion {
  errors: Problem[];
  warnings: Problem[];
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
      const answer = await body(api.POST("/validate", { body: parse(asked) as never, signal }));
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
    guarantee: data?.guarantee ?? null,
    isValid: !isChecking && !error && (data?.valid ?? false),
    isChecking,
  };
}

/** The id that the server derives from a name, or why there is none; neither until that is known. */
export function useDerivedId(name: unknown): { id?: string; problems: Problem[] } {
  const [asked] = useDebouncedValue(typeof name === "string" ? name : "", PAUSE_MS / 2);
  const { data } = useQuery({
    queryKey: ["derived id", asked],
    queryFn: async ({ signal }) => {
      // The rule is the same for all kinds; about a stream the server answers at once, without a worker.
      const document = { kind: KINDS.Stream.name, metadata: { name: asked }, spec: {} };
      return (await body(api.POST("/validate", { body: document as never, signal }))).documents[0]!;
    },
    enabled: asked !== "",
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  if (asked !== name || !data) return { problems: NONE };
  return data.valid ? { id: data.id ?? undefined, problems: NONE } : { problems: data.errors ?? NONE };
}
