import type { QueryClient } from "@tanstack/react-query";
import { ApiError, api, body, type Problem, problemsOf, type Schemas } from "#/api/client";
import { markDeleted, unmarkDeleted } from "#/api/deleted";
import { drop, one, put, save } from "#/api/documents";
import { type AnyDocument, KINDS, type KindName, keyOf } from "#/api/kinds";
import { contentOf } from "./content";

export type Referrer = Schemas["Referrer"];

/** What refers to others comes before what is referred to: so each is free when its turn comes. */
const ORDER: KindName[] = ["Pipeline", "Task", "Source", "Sink", "Stream"];
const AT_ONCE = 4;

/** Beyond so many documents nobody looks up who refers to each: the server refuses those anyway. */
export const MOST_LOOKED_UP = 200;

/** Documents that should go, and who of the others refers to them. */
export interface Plan {
  documents: AnyDocument[];
  /** By the key of a document: who refers to it and should stay. */
  held: ReadonlyMap<string, Referrer[]>;
  /** Those who refer to them, directly or through others. */
  dependents: AnyDocument[];
}

/** Looks up who refers to the documents. */
export async function lookUp(documents: readonly AnyDocument[]): Promise<Plan> {
  const chosen = new Set(documents.map(keyOf));
  const held = new Map<string, Referrer[]>();
  const dependents = new Map<string, AnyDocument>();
  let round = [...documents];
  while (round.length > 0 && documents.length <= MOST_LOOKED_UP) {
    const referrers = (await inTurn(round, (each) => one(KINDS[each.kind], each.id))).map(
      (found) => found.referrers ?? [],
    );
    const next = new Map<string, Referrer>();
    round.forEach((document, index) => {
      const others = referrers[index]!.filter((each) => !chosen.has(`${each.kind}/${each.id}`));
      if (chosen.has(keyOf(document)) && others.length > 0) held.set(keyOf(document), others);
      for (const each of others) {
        const key = `${each.kind}/${each.id}`;
        if (!dependents.has(key)) next.set(key, each);
      }
    });
    round = await inTurn([...next.values()], ({ kind, id }) => one(KINDS[kind as KindName], id));
    for (const found of round) dependents.set(keyOf(found), found);
  }
  return { documents: [...documents], held, dependents: [...dependents.values()] };
}

export interface Outcome {
  document: AnyDocument;
  problems: Problem[];
}

/** Deletes documents, referrers first; tells the outcome of each. One that is gone already counts as deleted. */
export async function deleteAll(
  documents: readonly AnyDocument[],
  told: (outcome: Outcome) => void,
  isOver: () => boolean = () => false,
): Promise<void> {
  for (const kind of ORDER) {
    await inTurn(
      documents.filter((each) => each.kind === kind),
      async (document) => {
        if (!isOver()) told({ document, problems: await remove(document) });
      },
    );
  }
}

async function remove({ kind, id }: AnyDocument): Promise<Problem[]> {
  const place = `/${KINDS[kind].place}`;
  markDeleted(`${place}/${id}`);
  try {
    await body(api.DELETE(`${place}/{name}` as "/pipelines/{name}", { params: { path: { name: id } } }));
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return [];
    unmarkDeleted(`${place}/${id}`);
    return problemsOf(error);
  }
  return [];
}

/** Creates deleted documents again, what is referred to first; the problems of those that could not be. */
export async function restore(queries: QueryClient, documents: readonly AnyDocument[]): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const name of ORDER.toReversed()) {
    const kind = KINDS[name];
    for (const document of documents.filter((each) => each.kind === name)) {
      try {
        put(queries, kind, await save({ kind, document: contentOf(document) }));
      } catch (error) {
        problems.push(...problemsOf(error));
      }
    }
  }
  return problems;
}

/** Brings the lists in line with what was deleted. */
export function forget(queries: QueryClient, documents: readonly AnyDocument[]): void {
  for (const { kind, id } of documents) drop(queries, KINDS[kind], id);
}

/** What goes with the documents and does not come back, in words. */
export function losses(documents: readonly AnyDocument[]): string[] {
  const has = (test: (document: AnyDocument) => boolean) => documents.some(test);
  const told: string[] = [];
  if (has(({ kind }) => kind === "Stream")) {
    told.push("Deleting a stream deletes its events. Undo restores the stream without events.");
  }
  if (has(({ status }) => Boolean(status))) {
    told.push(
      "A running flow stops after the current batch and loses its position. After undo, it starts over.",
    );
  }
  return told;
}

async function inTurn<Item, Result>(items: Item[], work: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = new Array(items.length);
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next++;
      results[index] = await work(items[index]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, worker));
  return results;
}
