import { type ApiError, api, body, type Problem, reach, type Schemas } from "#/api/client";

export type ImportResult = Schemas["ImportResult"];
export type Change = Schemas["Change"];
export type Mode = "merge" | "replace";

export interface Import {
  text: string;
  mode: Mode;
  /** Only tell what would change. */
  dryRun: boolean;
  acceptReset?: boolean;
  /** By which its progress can be asked for. */
  id?: string;
  signal?: AbortSignal;
}

/** Imports a bundle, or tells what that would change; the text goes as it is, JSON or YAML. */
export async function importBundle(order: Import): Promise<ImportResult> {
  const { text, mode, dryRun, acceptReset, id, signal } = order;
  const query = new URLSearchParams({
    ...(id === undefined ? {} : { id }),
    mode,
    dry_run: String(dryRun),
    accept_reset: String(acceptReset ?? false),
  });
  const answer = reach(`/bundle?${query}`, {
    method: "POST",
    headers: { "Content-Type": "application/yaml" },
    body: text,
    signal,
  }).then(async (response) => {
    const data = await response.json().catch(() => undefined);
    return { data: data as ImportResult, error: data, response };
  });
  return body(answer);
}

/** Whether a refusal can be overcome by accepting that flows lose what they remember. */
export const wouldReset = (error: ApiError) => error.problems.some(({ code }) => code === "would_reset");

/** The changes of an import by what is done. */
export function byAction(changes: readonly Change[]): Record<Change["action"], Change[]> {
  const found: Record<Change["action"], Change[]> = { create: [], update: [], delete: [], unchanged: [] };
  for (const change of changes) found[change.action].push(change);
  return found;
}

export type ImportProgress = Schemas["ImportProgress"];

/** How far an import is; null if it has ended, or the server cannot tell. */
export const importProgress = (id: string): Promise<ImportProgress | null> =>
  body(api.GET("/bundle/progress/{id}", { params: { path: { id } } }))
    .then((found) => found ?? null)
    .catch(() => null);

/** The problems of an import with their paths in the documents: messages name the document by kind and name. */
export const placed = (problems: readonly Problem[]): Problem[] =>
  problems.map((problem) => ({
    ...problem,
    path: problem.path?.replace(/^documents\[\d+\]\.?/, "") || null,
  }));
