import type { Attention } from "#/api/overview";
import type { Topology } from "#/api/topology";

/** The ends that are written inside of each document, in a few words: `http → file, stream`. */
export function insidesOf({ nodes }: Topology): Map<string, string> {
  const sources = new Map<string, string>();
  const sinks = new Map<string, string[]>();
  for (const { inline, owner, kind, type, name } of nodes) {
    if (!inline || owner === null) continue;
    if (kind === "Source") sources.set(owner, type ?? name);
    if (kind === "Sink") sinks.set(owner, [...(sinks.get(owner) ?? []), type ?? name]);
  }
  const owners = new Set([...sources.keys(), ...sinks.keys()]);
  return new Map(
    [...owners].map((owner) => {
      const out = [...new Set(sinks.get(owner))].join(", ");
      return [owner, [sources.get(owner) ?? "", out].filter(Boolean).join(" → ")];
    }),
  );
}

/** Why what needs attention needs it, by key. */
export function troublesOf(attention: readonly Attention[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { key, code, severity } of attention) {
    if (key !== null && severity !== "info") found.set(key, [...(found.get(key) ?? []), code]);
  }
  return found;
}
