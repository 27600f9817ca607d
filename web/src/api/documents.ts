import {
  keepPreviousData,
  type QueryClient,
  type UseQueryResult,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { ApiError, api, body, whole } from "./client";
import { unmarkDeleted } from "./deleted";
import type { AnyDocument, Kind, Place } from "./kinds";

const PAGE = 1000;

export const listKey = (place: Place) => ["documents", place] as const;
export const documentKey = (place: Place, id: string) => ["document", place, id] as const;

// The five kinds have the same routes, which the types of a path with a variable in it cannot say.
const at = (place: Place, rest = "") => `/${place}${rest}` as "/pipelines";
const below = (place: Place, rest = "") => `/${place}/{name}${rest}` as "/pipelines/{name}";

/** Every document of a kind, kept up to date by the events of the server. */
export function useDocuments(kind: Kind): UseQueryResult<AnyDocument[]> {
  return useQuery({
    queryKey: listKey(kind.place),
    queryFn: ({ signal, client }) => all(kind, signal, client),
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: keepPreviousData,
  });
}

/** One document at its current revision, with who refers to it. */
export function useDocument(kind: Kind, id: string): UseQueryResult<AnyDocument> {
  return useQuery({ queryKey: documentKey(kind.place, id), queryFn: () => one(kind, id) });
}

export async function one(kind: Kind, id: string): Promise<AnyDocument> {
  const found = await body(api.GET(below(kind.place), { params: { path: { name: id } } }));
  return { ...found, kind: kind.name } as AnyDocument;
}

async function all(kind: Kind, signal: AbortSignal, queries: QueryClient): Promise<AnyDocument[]> {
  const found: AnyDocument[] = [];
  const isFirst = queries.getQueryData(listKey(kind.place)) === undefined;
  for (;;) {
    const query = { limit: PAGE, offset: found.length };
    const page = await body(api.GET(at(kind.place), { params: { query }, signal }));
    for (const item of page.items) found.push({ ...item, kind: kind.name } as AnyDocument);
    if (found.length >= page.total || page.items.length === 0) return found;
    // The first of many are shown while the others are on their way.
    if (isFirst && found.length === PAGE) queries.setQueryData(listKey(kind.place), [...found]);
  }
}

export interface Save {
  kind: Kind;
  document: object;
  /** The id of the document to replace; a new one is created without it. */
  id?: string;
  /** The revision that was edited: another one in the meantime is not overwritten. */
  revision?: string;
  acceptReset?: boolean;
  from?: string;
}

/** Saves a document, new or edited; throws ApiError with everything that is wrong with it. */
export async function save({ kind, document, id, revision, acceptReset, from }: Save): Promise<AnyDocument> {
  const answer =
    id === undefined
      ? api.POST(at(kind.place), { body: document as never })
      : api.PUT(below(kind.place), {
          params: {
            path: { name: id },
            query: { accept_reset: acceptReset, from },
            header: { "if-match": revision },
          },
          body: document as never,
        });
  const { data, response } = await whole(answer);
  const saved = { ...(data as object), kind: kind.name } as AnyDocument;
  unmarkDeleted(`/${kind.place}/${saved.id}`);
  return response.status === ACCEPTED ? started(kind, saved) : saved;
}

/** The status of an edit that is saved, and has yet to show that it runs. */
export const ACCEPTED = 202;

const START_MS = 120_000;
const LOOK_MS = 500;

/**
 * A document that was saved, once its new revision runs; throws ApiError if that did not start and was rolled
 * back. If neither happens for a while, the document as it was saved: its page shows what becomes of it.
 */
export async function started(kind: Kind, saved: AnyDocument): Promise<AnyDocument> {
  for (const until = Date.now() + START_MS; Date.now() < until; ) {
    const now = await one(kind, saved.id);
    if (now.revision > saved.revision && now.error?.code === "rolled_back")
      throw new ApiError(409, [now.error]);
    const isOpen = now.revision === saved.revision && now.status === "active";
    if (!isOpen || now.running_revision === saved.revision) return now;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  return saved;
}

/** The entity tag of a document: what `revision` of a save has to be. */
export async function fetchWithTag(kind: Kind, id: string): Promise<{ document: AnyDocument; tag: string }> {
  const found = await whole(api.GET(below(kind.place), { params: { path: { name: id } } }));
  const document = { ...(found.data as object), kind: kind.name } as AnyDocument;
  return { document, tag: found.response.headers.get("ETag") ?? "" };
}

export function useSave() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: save,
    onSuccess: (saved, { kind }) => put(queries, kind, saved),
  });
}

export function useDelete() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ kind, id }: { kind: Kind; id: string }) =>
      body(api.DELETE(below(kind.place), { params: { path: { name: id } } })),
    onSuccess: (_, { kind, id }) => drop(queries, kind, id),
  });
}

export type Verb = "pause" | "resume" | "stop" | "start" | "restart";

/** Pause, resume, stop, start or restart what runs. */
export function useVerb() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ kind, id, verb }: { kind: Kind; id: string; verb: Verb }) => {
      const path = below(kind.place, `/${verb}`) as unknown as "/pipelines/{name}/pause";
      const found = await body(api.POST(path, { params: { path: { name: id } } }));
      return { ...found, kind: kind.name } as AnyDocument;
    },
    onSuccess: (found, { kind }) => put(queries, kind, found),
  });
}

/** Brings the caches in line with a document that was saved or has changed. */
export function put(queries: QueryClient, kind: Kind, document: AnyDocument): void {
  queries.setQueryData<AnyDocument>(documentKey(kind.place, document.id), (before) => ({
    ...document,
    referrers: document.referrers ?? before?.referrers ?? null,
  }));
  queries.setQueryData<AnyDocument[]>(listKey(kind.place), (before) => {
    if (before === undefined) return before;
    const place = before.findIndex((each) => each.id === document.id);
    return place < 0 ? [...before, document] : before.with(place, document);
  });
}

/** Brings the caches in line with a document that is gone. */
export function drop(queries: QueryClient, kind: Kind, id: string): void {
  queries.removeQueries({ queryKey: documentKey(kind.place, id) });
  queries.setQueryData<AnyDocument[]>(listKey(kind.place), (before) =>
    before?.filter((each) => each.id !== id),
  );
}
