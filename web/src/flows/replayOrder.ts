import type { Problem } from "#/api/client";

/** Where the events of a replay go. */
export type Target = "all" | "some" | "file" | "stream";

/** What the form of a replay holds. */
export interface ReplayForm {
  from: string;
  /** Empty: the present end of the stream. */
  to: string;
  target: Target;
  sinks: string[];
  path: string;
  stream: string;
  name: string;
}

/** The order as the server takes it; null while something that it needs is missing. */
export function orderOf(form: ReplayForm) {
  const sinks = sinksOf(form);
  if (!form.from || sinks === null) return null;
  return { from: form.from, to: form.to || null, sinks, name: form.name.trim() || null };
}

export type ReplayOrder = NonNullable<ReturnType<typeof orderOf>>;

function sinksOf({ target, sinks, path, stream }: ReplayForm) {
  switch (target) {
    case "all":
      return "all" as const;
    case "some":
      return sinks.length > 0 ? sinks : null;
    case "file":
      return path.trim() ? { shadow: { type: "file", path: path.trim(), format: "json" } } : null;
    case "stream":
      return stream ? { shadow: { type: "stream", stream } } : null;
  }
}

/** The problem at a field of the form, and below it. */
export function problemAt(problems: readonly Problem[], path: string): string | undefined {
  const found = problems.find(
    (each) => each.path === path || each.path?.startsWith(`${path}.`) || each.path?.startsWith(`${path}[`),
  );
  return found && (found.hint ? `${found.message}. ${found.hint}` : found.message);
}

/** The problems that no field of the form shows. */
export const unplaced = (problems: readonly Problem[]) =>
  problems.filter((each) => !each.path || !/^(from|to|name|sinks)\b/.test(each.path));
