import type { Problem } from "#/api/client";
import { words } from "./schema";

/** The place of a field, as problems name it: `spec.processors[1].query`. */
export const below = (path: string, name: string | number): string =>
  typeof name === "number" ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;

/** Whether a place is the given one or lies below it. */
export function isAtOrBelow(place: string, path: string): boolean {
  if (path === "") return true;
  return place === path || place.startsWith(`${path}.`) || place.startsWith(`${path}[`);
}

export const problemsBelow = (problems: readonly Problem[], path: string): Problem[] =>
  problems.filter((problem) => isAtOrBelow(problem.path ?? "", path));

/** The problems at a place that none of the places below it will show. */
export function problemsLeft(problems: readonly Problem[], path: string, shown: string[]): Problem[] {
  return problemsBelow(problems, path).filter(
    (problem) => !shown.some((place) => isAtOrBelow(problem.path ?? "", place)),
  );
}

export function sentence(problems: readonly Problem[]): string | undefined {
  if (problems.length === 0) return undefined;
  return problems
    .map(({ message, hint }) => {
      const text = message.charAt(0).toUpperCase() + message.slice(1);
      return hint ? `${text} (${hint})` : text;
    })
    .join(". ");
}

const FOCUSABLE = "input:not([type=hidden]), textarea, button, [contenteditable=true], select";

/** Brings the field at a path into view and the cursor into it; tells whether there is one. */
export function focusPath(path: string, within: ParentNode = document): boolean {
  const field = nearest(path, within);
  if (!field) return false;
  for (let fold = field.closest("details"); fold; fold = fold.parentElement?.closest("details") ?? null) {
    fold.open = true;
  }
  field.scrollIntoView({ block: "center" });
  const target = field.matches(FOCUSABLE) ? field : field.querySelector<HTMLElement>(FOCUSABLE);
  target?.focus({ preventScroll: true });
  return true;
}

// A problem may name a place inside what one field shows: then it is that field.
function nearest(path: string, within: ParentNode): HTMLElement | undefined {
  let found: HTMLElement | undefined;
  for (const element of within.querySelectorAll<HTMLElement>("[data-path]")) {
    const place = element.dataset.path!;
    if (isAtOrBelow(path, place) && place.length >= (found?.dataset.path?.length ?? 0)) found = element;
  }
  return found;
}

/** The label of the field at a path: `spec.wal.retention_ms` → Retention, `spec.sinks[1]` → Sinks 2. */
export function labelOf(path: string): string {
  const [, name = path, index] = /([^.[\]]+)(?:\[(\d+)\])?$/.exec(path) ?? [];
  return index === undefined ? words(name) : `${words(name)} ${Number(index) + 1}`;
}
