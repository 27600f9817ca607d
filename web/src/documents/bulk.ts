import { useState } from "react";
import { useVerb, type Verb } from "#/api/documents";
import type { AnyDocument, Kind } from "#/api/kinds";
import { capital, plural } from "#/components/format";
import { done, failed } from "#/components/notify";
import { VERBS, verbsFor } from "#/flows/useControls";

/** The verbs that let a flow rest or go on. */
export type Toggle = "pause" | "resume" | "start";

export const TOGGLES: readonly Toggle[] = ["pause", "resume", "start"];

/** What lets a flow rest or go on, as it is; null for what does not run. */
export function toggleOf(document: Pick<AnyDocument, "status">): Toggle | null {
  return (verbsFor(document).find((verb) => TOGGLES.includes(verb as Toggle)) as Toggle | undefined) ?? null;
}

/** Flows that are asked at once: each waits for its worker, and a server has other things to do. */
const AT_ONCE = 4;

/** Does something with each of some documents, a few at a time; returns what was refused. */
export async function each<T>(
  items: readonly T[],
  act: (item: T) => Promise<unknown>,
  progress: (finished: number) => void,
): Promise<{ item: T; error: unknown }[]> {
  const refused: { item: T; error: unknown }[] = [];
  let [next, finished] = [0, 0];
  const work = async () => {
    while (next < items.length) {
      const item = items[next++]!;
      await act(item).catch((error) => refused.push({ item, error }));
      progress(++finished);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return refused;
}

/** Pauses, resumes or starts flows, one or many, and says what became of that. */
export function useToggles(kind: Kind) {
  const verb = useVerb();
  const [under, setUnder] = useState<string | null>(null);
  const toggle = async (action: Verb, documents: readonly AnyDocument[]) => {
    const progress = (finished: number) => setUnder(`${capital(action)}: ${finished} of ${documents.length}`);
    progress(0);
    const refused = await each(documents, ({ id }) => verb.mutateAsync({ kind, id, verb: action }), progress);
    setUnder(null);
    const good = documents.length - refused.length;
    const [first] = documents;
    const what = documents.length === 1 ? `${kind.one} ${first?.name}` : plural(good, kind.one);
    if (good > 0) done(`${capital(VERBS[action].done)} ${what}.`);
    if (refused.length > 0) {
      const names = refused
        .map(({ item }) => item.name)
        .slice(0, 5)
        .join(", ");
      failed(`Could not ${action} ${names}${refused.length > 5 ? " and others" : ""}`, refused[0]!.error);
    }
  };
  /** What is under way, such as `Pause: 3 of 12`; null if nothing is. */
  return { toggle, under };
}
