import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, body, type Schemas } from "#/api/client";

export type QueryResult = Schemas["QueryResult"];
export type SavedQuery = Schemas["SavedQueryView"];

/** A query with its limits, and the id by which it can be cancelled. */
export interface Run {
  sql: string;
  limit: number;
  timeout_ms: number;
  id: string;
}

export const runQuery = (run: Run): Promise<QueryResult> => body(api.POST("/query", { body: run }));

export const cancelQuery = (id: string) => body(api.DELETE("/query/{id}", { params: { path: { id } } }));

const SAVED = ["queries"] as const;

/** Queries that were saved on the server. Everyone who may query streams sees them. */
export function useSavedQueries() {
  return useQuery({ queryKey: SAVED, queryFn: () => body(api.GET("/queries")).then(({ items }) => items) });
}

export function useSaveQuery() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ name, sql }: { name: string; sql: string }) =>
      body(api.PUT("/queries/{name}", { params: { path: { name } }, body: { sql } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: SAVED }),
  });
}

export function useDeleteQuery() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (name: string) => body(api.DELETE("/queries/{name}", { params: { path: { name } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: SAVED }),
  });
}
