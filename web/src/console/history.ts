import { useLocalStorage } from "@mantine/hooks";

/** A query that was run in this browser, and what became of it. */
export interface Past {
  sql: string;
  /** When, in milliseconds since 1970. */
  at: number;
  outcome: string;
}

/** Queries that a browser remembers. */
export const MOST = 50;

/** The history after one more query: newest first, the same text once. */
export const remembered = (past: readonly Past[], one: Past): Past[] =>
  [one, ...past.filter(({ sql }) => sql !== one.sql)].slice(0, MOST);

/** The queries that were run in this browser, newest first. */
export function useHistory() {
  const [past, setPast] = useLocalStorage<Past[]>({ key: "penstock.queries", defaultValue: [] });
  return { past, add: (one: Past) => setPast((before) => remembered(before, one)), clear: () => setPast([]) };
}
