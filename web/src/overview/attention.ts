import { pageOfKey } from "#/api/kinds";
import type { Attention } from "#/api/overview";
import { plural } from "#/components/format";

const ABOUT_WORKERS = new Set(["no_worker", "worker_gone", "worker_stuck"]);

/** Where a person can do something about it; null if nowhere in the app. */
export function repairAt({ code, key }: Attention): string | null {
  if (ABOUT_WORKERS.has(code)) return "/workers";
  if (code === "disk_low") return "/streams";
  if (key === null) return null;
  return code === "dead_letters" ? `${pageOfKey(key)}?tab=letters` : pageOfKey(key);
}

/** What the link there is called. */
export function repairLabel({ code, name }: Attention): string {
  if (ABOUT_WORKERS.has(code)) return "Open workers";
  if (code === "disk_low") return "Open streams";
  return code === "dead_letters" ? `Open dead letters of ${name}` : `Open ${name}`;
}

/** How many there are of each severity, in words: 2 errors, 1 warning. */
export function tally(attention: readonly Attention[]): string {
  const words = { error: "error", warning: "warning", info: "note" };
  return Object.entries(words)
    .map(([severity, word]) => [attention.filter((each) => each.severity === severity).length, word] as const)
    .filter(([number]) => number > 0)
    .map(([number, word]) => plural(number, word))
    .join(", ");
}
