import { type ApiError, body, reach, type Schemas } from "#/api/client";

export type ImportResult = Schemas["ImportResult"];
export type Change = Schemas["Change"];
export type Mode = "merge" | "replace";

export interface Import {
  text: string;
  mode: Mode;
  /** Only tell what would change. */
  dryRun: boolean;
  acceptReset?: boolean;
}

/** Imports a bundle, or tells what that would change; the text goes as it is, JSON or YAML. */
export async function importBundle({ text, mode, dryRun, acceptReset }: Import): Promise<ImportResult> {
  const query = new URLSearchParams({
    mode,
    dry_run: String(dryRun),
    accept_reset: String(acceptReset ?? false),
  });
  const answer = reach(`/bundle?${query}`, {
    method: "POST",
    headers: { "Content-Type": "application/yaml" },
    body: text,
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
