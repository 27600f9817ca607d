import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, body, type Schemas } from "#/api/client";
import type { Kind } from "#/api/kinds";
import { below, belowKey, type Letter } from "../api";

export type LetterState = Letter["state"];
export type ReplayResult = Schemas["ReplayResult"];
export type Begin = "step" | "start";

/** Which letters are wanted; null: any. */
export interface LetterFilter {
  step: string | null;
  code: string | null;
  contains: string;
  state: LetterState | "all";
}

export const ANY: LetterFilter = { step: null, code: null, contains: "", state: "all" };

export const PAGE = 50;

const lettersKey = (kind: Kind, id: string, ...rest: unknown[]) => belowKey(kind, id, "letters", ...rest);

/** Letters before an offset, newest first; null: the newest of all. */
export function useLetters(kind: Kind, id: string, filter: LetterFilter, before: number | null) {
  return useQuery({
    queryKey: lettersKey(kind, id, filter, before),
    queryFn: () => page(kind, id, filter, before, PAGE),
    placeholderData: keepPreviousData,
    refetchInterval: 5_000,
  });
}

/** How many letters nobody has dealt with. */
export function useNewLetters(kind: Kind, id: string) {
  return useQuery({
    queryKey: lettersKey(kind, id, "count"),
    queryFn: async () => (await page(kind, id, ANY, null, 1)).states.new ?? 0,
    refetchInterval: 10_000,
  });
}

function page(kind: Kind, id: string, filter: LetterFilter, before: number | null, limit: number) {
  const query = {
    order: "newest" as const,
    position: before === null ? undefined : `offset:${before}`,
    limit,
    step: filter.step ?? undefined,
    code: filter.code ?? undefined,
    contains: filter.contains || undefined,
    state: filter.state,
  };
  return body(
    api.GET(below(kind, "/pipelines/{name}/dead-letters"), { params: { path: { name: id }, query } }),
  );
}

/** One letter, whole. */
export function useLetter(kind: Kind, id: string, offset: number) {
  return useQuery({
    queryKey: lettersKey(kind, id, "one", offset),
    queryFn: () => letter(kind, id, offset),
  });
}

export const letter = (kind: Kind, id: string, offset: number) =>
  body(api.GET(below(kind, "/pipelines/{name}/dead-letters/{offset}"), at(id, offset)));

const at = (id: string, offset: number) => ({ params: { path: { name: id, offset } } });

/** What can be done with letters; the lists are up to date afterwards. */
export function useLetterActions(kind: Kind, id: string) {
  const queries = useQueryClient();
  const onSettled = () => queries.invalidateQueries({ queryKey: lettersKey(kind, id) });
  const one = "/pipelines/{name}/dead-letters/{offset}" as const;
  const edit = useMutation({
    mutationFn: ({ offset, event }: { offset: number; event: Record<string, unknown> }) =>
      body(api.PUT(below(kind, one), { ...at(id, offset), body: { event } })),
    onSettled,
  });
  const discard = useMutation({
    mutationFn: (offsets: readonly number[]) =>
      Promise.all(offsets.map((offset) => body(api.DELETE(below(kind, one), at(id, offset))))),
    onSettled,
  });
  const restore = useMutation({
    mutationFn: (offsets: readonly number[]) =>
      Promise.all(
        offsets.map((offset) =>
          body(api.POST(below(kind, "/pipelines/{name}/dead-letters/{offset}/restore"), at(id, offset))),
        ),
      ),
    onSettled,
  });
  const send = useMutation({
    mutationFn: (offsets: readonly number[]) =>
      Promise.all(
        offsets.map((offset) =>
          body(api.POST(below(kind, "/pipelines/{name}/dead-letters/{offset}/send"), at(id, offset))),
        ),
      ),
    onSettled,
  });
  return { edit, discard, restore, send };
}

/** Letters to replay: some by their offsets, or all that a filter finds. */
export type Choice = { offsets: number[] } | { filter: LetterFilter };

/** Replays letters, or with `dryRun` only tells which could be. */
export function replayLetters(
  kind: Kind,
  id: string,
  choice: Choice,
  { begin, dryRun, from = 0 }: { begin: Begin; dryRun: boolean; from?: number },
): Promise<ReplayResult> {
  return body(
    api.POST(below(kind, "/pipelines/{name}/dead-letters/replay"), {
      params: { path: { name: id } },
      body: { ...wanted(choice), from: begin, position: from, dry_run: dryRun } as never,
    }),
  );
}

function wanted(choice: Choice) {
  // Chosen by hand means also those that were replayed before.
  if ("offsets" in choice) return { offsets: choice.offsets, filter: { state: "all" } };
  const { step, code, contains, state } = choice.filter;
  return {
    filter: { step, code, contains: contains || null, state: state === "replayed" ? "replayed" : "new" },
  };
}
