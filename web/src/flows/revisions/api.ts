import { useQuery } from "@tanstack/react-query";
import { api, body, type Schemas, whole } from "#/api/client";
import { ACCEPTED, started } from "#/api/documents";
import type { AnyDocument, Kind } from "#/api/kinds";
import { below, belowKey } from "../api";

export type Revision = Schemas["RevisionSummary"];
export type DiffEntry = Schemas["DiffEntry"];

/** The revisions of a document, the newest first. */
export function useRevisions(kind: Kind, { id, revision }: AnyDocument) {
  return useQuery({
    // A new revision is a new list: nobody has to wait for an event to see it.
    queryKey: belowKey(kind, id, "revisions", revision),
    queryFn: async () => {
      const found = await body(
        api.GET(below(kind, "/pipelines/{name}/revisions"), { params: { path: { name: id } } }),
      );
      return found.toSorted((a, b) => b.revision - a.revision);
    },
  });
}

/** One revision with its content. It never changes. */
export function useRevision(kind: Kind, id: string, number: number | null) {
  return useQuery({
    queryKey: ["revision", kind.place, id, number],
    queryFn: () => fetchRevision(kind, id, number!),
    enabled: number !== null,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

const fetchRevision = (kind: Kind, id: string, number: number) =>
  body(
    api.GET(below(kind, "/pipelines/{name}/revisions/{number}"), { params: { path: { name: id, number } } }),
  );

/** How two revisions differ, field by field. */
export function useDiff(kind: Kind, id: string, from: number, to: number) {
  return useQuery({
    queryKey: ["diff", kind.place, id, from, to],
    queryFn: () =>
      body(
        api.GET(below(kind, "/pipelines/{name}/diff"), {
          params: { path: { name: id }, query: { from, to } },
        }),
      ),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Makes the content of an earlier revision the newest one. */
export async function rollBack(
  kind: Kind,
  id: string,
  revision: number,
  acceptReset: boolean,
  from?: string,
): Promise<AnyDocument> {
  const params = { path: { name: id }, query: { accept_reset: acceptReset, from } };
  const { data, response } = await whole(
    api.POST(below(kind, "/pipelines/{name}/rollback"), { params, body: { revision } }),
  );
  const saved = { ...data, kind: kind.name } as AnyDocument;
  return response.status === ACCEPTED ? started(kind, saved) : saved;
}
