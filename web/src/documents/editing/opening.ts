import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { useParams, useSearchParams } from "react-router";
import { fetchWithTag, one } from "#/api/documents";
import type { AnyDocument, Kind } from "#/api/kinds";
import { contentOf } from "../content";
import { textOf, type Value } from "./yaml";

/** A document that is to be edited, as the page begins with it. */
export interface Opened {
  text: string;
  /** Null for a new one. */
  id: string | null;
  /** The entity tag of the revision that is edited. */
  tag: string | null;
}

/** Reads what the address names: a document to edit, one to clone (`?clone=ID`), or nothing. */
export function useOpened(kind: Kind, blank: Value): UseQueryResult<Opened> {
  const { id } = useParams();
  const [parameters] = useSearchParams();
  const clone = parameters.get("clone");
  return useQuery({
    queryKey: ["editing", kind.place, id ?? null, clone],
    queryFn: async (): Promise<Opened> => {
      if (id !== undefined) {
        const { document, tag } = await fetchWithTag(kind, id);
        return { text: textOfSaved(document), id: document.id, tag };
      }
      if (clone === null) return { text: textOf({ ...HEAD(kind), ...blank }), id: null, tag: null };
      const original = await one(kind, clone);
      const metadata = { ...original.metadata, name: `${original.metadata.name} copy` };
      return { text: textOfSaved({ ...original, metadata }), id: null, tag: null };
    },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
}

const HEAD = (kind: Kind) => ({ apiVersion: "penstock/v1", kind: kind.name });

/** A saved document as text. Its status is left open: it goes on as it is, unless one says otherwise. */
export function textOfSaved(document: AnyDocument): string {
  const { status: _, ...content } = contentOf(document);
  return textOf(content);
}
