import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, body, type Schemas } from "#/api/client";
import type { Place } from "#/api/kinds";
import type { Column } from "#/editors/language";
import { sourceOnly } from "./testable";

interface Columns {
  columns: Column[];
  /** They are not known yet. */
  isAsking: boolean;
}

const NONE: Column[] = [];

/** The columns of the source: those that are known already, or as the server tells them. */
export function useColumns(
  document: object,
  place: Place,
  steps: readonly Schemas["StepSchema"][] = [],
): Columns {
  const known = columnsIn(steps);
  const [asked] = useDebouncedValue(JSON.stringify(sourceOnly(document, place)), 300);
  const { data, isFetching } = useQuery({
    queryKey: ["validate", "source", asked],
    queryFn: async ({ signal }) => {
      const answer = await body(api.POST("/validate", { body: JSON.parse(asked) as never, signal }));
      return columnsIn(answer.documents[0]?.steps ?? []) ?? NONE;
    },
    placeholderData: keepPreviousData,
    enabled: known === undefined && asked !== "null",
    retry: false,
  });
  const columns = known ?? data ?? NONE;
  return { columns, isAsking: isFetching && columns.length === 0 };
}

const columnsIn = (steps: readonly Schemas["StepSchema"][]) =>
  steps.find((step) => step.id === "source")?.columns;
