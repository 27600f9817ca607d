import { useMediaQuery } from "@mantine/hooks";
import { useCallback, useMemo } from "react";
import { useSearchParams } from "react-router";
import type { Topology } from "#/api/topology";
import type { Choice } from "./graph";
import { CROWDED, path } from "./graph";

export type View = "graph" | "list";

export interface Chosen {
  choice: Choice;
  view: View;
  /** Whether something is left out on purpose. */
  narrowed: boolean;
  set: (change: Partial<Choice> & { view?: View }) => void;
  clear: () => void;
}

const LISTS = { kinds: "kind", statuses: "status", labels: "label" } as const;

/** What is shown and how, kept in the address of the page. */
export function useChoice(whole: Topology): Chosen {
  const [search, setSearch] = useSearchParams();
  // A graph needs some room; whoever has little gets the same as a list, unless they want the graph.
  const isSmall = useMediaQuery("(max-width: 48em)", undefined, { getInitialValueInEffect: false });
  const choice = useMemo((): Choice => {
    const of = search.get("of");
    const nodes = of === null ? whole.nodes.length : path(whole.edges, of).size;
    return {
      kinds: search.getAll(LISTS.kinds),
      statuses: search.getAll(LISTS.statuses),
      labels: search.getAll(LISTS.labels),
      of,
      ends: search.has("ends") ? search.get("ends") === "1" : nodes <= CROWDED,
    };
  }, [search, whole]);
  const set = useCallback(
    (change: Partial<Choice> & { view?: View }) =>
      setSearch((before) => changed(before, change), { replace: true }),
    [setSearch],
  );
  const clear = useCallback(() => set({ kinds: [], statuses: [], labels: [], of: null }), [set]);
  const view = search.get("view") ?? (isSmall ? "list" : "graph");
  const narrowed =
    choice.kinds.length + choice.statuses.length + choice.labels.length > 0 || choice.of !== null;
  return { choice, view: view === "list" ? "list" : "graph", narrowed, set, clear };
}

function changed(before: URLSearchParams, change: Partial<Choice> & { view?: View }): URLSearchParams {
  const next = new URLSearchParams(before);
  for (const [field, name] of Object.entries(LISTS) as [keyof typeof LISTS, string][]) {
    const values = change[field];
    if (values === undefined) continue;
    next.delete(name);
    for (const value of values) next.append(name, value);
  }
  if (change.of !== undefined) {
    if (change.of === null) next.delete("of");
    else next.set("of", change.of);
  }
  if (change.ends !== undefined) next.set("ends", change.ends ? "1" : "0");
  if (change.view !== undefined) next.set("view", change.view);
  return next;
}
