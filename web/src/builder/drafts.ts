import type { Place } from "#/api/kinds";

/** What somebody has written and not saved: kept in this tab of the browser, also over a reload. */
export interface Draft {
  text: string;
  /** The last text that could be shown on the canvas. */
  goodText: string;
  /** What the draft began with. */
  base: string;
  /** The entity tag of the revision that it is an edit of. */
  tag: string | null;
  at: number;
}

const keyOf = (place: Place, id: string | null) => `penstock.draft.${place}.${id ?? ""}`;

export function readDraft(place: Place, id: string | null): Draft | null {
  try {
    const found = JSON.parse(sessionStorage.getItem(keyOf(place, id)) ?? "null") as Draft | null;
    return typeof found?.text === "string" ? found : null;
  } catch {
    return null; // a browser that keeps nothing, or something that is not ours
  }
}

export function keepDraft(place: Place, id: string | null, draft: Draft): void {
  try {
    sessionStorage.setItem(keyOf(place, id), JSON.stringify(draft));
  } catch {
    // No room, or not allowed: the page still asks before it is left.
  }
}

export function dropDraft(place: Place, id: string | null): void {
  try {
    sessionStorage.removeItem(keyOf(place, id));
  } catch {
    // There was none.
  }
}
