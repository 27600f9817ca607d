import { useQuery } from "@tanstack/react-query";
import { fetchWithTag, one } from "#/api/documents";
import { type AnyDocument, kindAt, type Place } from "#/api/kinds";
import { textOfSaved } from "#/documents/editing/opening";
import { type Draft, readDraft } from "./drafts";

/** What the builder opens with. */
export interface Opened {
  text: string;
  goodText: string;
  /** What counts as unchanged. */
  base: string;
  tag: string | null;
  saved: AnyDocument | null;
  /** When the draft was written that was found; null if there was none. */
  draftOf: number | null;
}

/** Reads what is to be edited or cloned, and the draft of it, if there is one. Null: nothing to begin with. */
export function useOpening(place: Place, id: string | null, clone: string | null) {
  const kind = kindAt(place)!;
  return useQuery({
    queryKey: ["builder", place, id, clone],
    queryFn: async (): Promise<Opened | null> => {
      if (id !== null) {
        const { document, tag } = await fetchWithTag(kind, id);
        return opened(textOfSaved(document), tag, document, readDraft(place, id));
      }
      if (clone !== null) {
        const document = await one(kind, clone);
        const { name } = document.metadata;
        const copy = { ...document, metadata: { ...document.metadata, name: `${name} copy` } };
        return opened(textOfSaved(copy), null, null, null);
      }
      const draft = readDraft(place, null);
      return draft && opened(draft.base, null, null, draft);
    },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
}

function opened(base: string, tag: string | null, saved: AnyDocument | null, draft: Draft | null): Opened {
  if (draft === null || draft.text === base)
    return { text: base, goodText: base, base, tag, saved, draftOf: null };
  // An edit of an older revision stays one: a save tells what has changed meanwhile.
  return { ...draft, tag: draft.tag ?? tag, saved, draftOf: draft.at };
}
