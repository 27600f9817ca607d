import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, body, type Schemas } from "#/api/client";
import type { Place } from "#/api/kinds";
import type { Column } from "#/editors/language";
import { testable } from "./testable";

const NONE: Column[] = [];

interface Columns {
  columns: Column[];
  /** They are not known yet. */
  isAsking: boolean;
}

/** The columns of the source: those that are known already, or as the server tells them. */
export function useColumns(document: object, place: Place, steps?: Schemas["StepSchema"][]): Columns {
  const text = useMemo(() => JSON.stringify(testable(document, place)), [document, place]);
  const [asked] = useDebouncedValue(text, 500);
  const { data, isFetching } = useQuery({
    queryKey: ["validate", "columns", asked],
    queryFn: async ({ signal }) => {
      const answer = await body(api.POST("/validate", { body: JSON.parse(asked) as never, signal }));
      return answer.documents[0]?.steps ?? [];
    },
    placeholderData: keepPreviousData,
    enabled: steps === undefined,
    retry: false,
  });
  const columns = (steps ?? data)?.find((step) => step.id === "source")?.columns ?? NONE;
  return { columns, isAsking: isFetching && columns.length === 0 };
}
