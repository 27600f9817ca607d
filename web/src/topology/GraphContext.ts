import { createContext, useContext } from "react";
import type { TopologyEdge } from "#/api/topology";

/** What the nodes and edges of the graph share. */
export interface Shared {
  /** The keys on the path that is looked at; null if none is. */
  lit: ReadonlySet<string> | null;
  /** The node that was searched for. */
  found: string | null;
  /** Keys of what needs attention, with the codes of why. */
  troubles: ReadonlyMap<string, readonly string[]>;
  /** What is inside of documents whose ends are not shown, in a few words. */
  insides: ReadonlyMap<string, string>;
  onlyConnected: (key: string) => void;
  /** Shows what passes along an edge. */
  onEdge: (edge: TopologyEdge) => void;
}

export const GraphContext = createContext<Shared>({
  lit: null,
  found: null,
  troubles: new Map(),
  insides: new Map(),
  onlyConnected: () => {},
  onEdge: () => {},
});

export const useShared = () => useContext(GraphContext);
