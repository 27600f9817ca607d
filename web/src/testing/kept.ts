import { useCallback, useEffect, useState } from "react";
import type { Format } from "./samples";

/** What somebody has written to try a document on. */
export interface Kept {
  /** Null: nothing yet, so that something is suggested. */
  text: string | null;
  /** Null: as the text looks. */
  format: Format | null;
  /** Step → JSON of what the outside would answer. */
  given: Record<string, string>;
}

const NOTHING: Kept = { text: null, format: null, given: {} };

/**
 * The samples of a document: kept in this tab of the browser, also over a reload. They go along with the document
 * while its name is being written.
 */
export function useKept(name: string): [Kept, (change: Partial<Kept>) => void] {
  const key = `penstock.samples.${name}`;
  const [kept, setKept] = useState(() => read(key));
  useEffect(() => {
    if (kept !== NOTHING) write(key, kept);
  }, [key, kept]);
  const change = useCallback((next: Partial<Kept>) => setKept((before) => ({ ...before, ...next })), []);
  return [kept, change];
}

function read(key: string): Kept {
  try {
    const found = JSON.parse(sessionStorage.getItem(key) ?? "null") as Partial<Kept> | null;
    return found ? { ...NOTHING, ...found } : NOTHING;
  } catch {
    return NOTHING; // a browser that keeps nothing, or something that is not ours
  }
}

function write(key: string, kept: Kept): void {
  try {
    sessionStorage.setItem(key, JSON.stringify(kept));
  } catch {
    // No room, or not allowed: the samples stay as long as the page does.
  }
}
