/** The texts of a document, past and future. */
export interface History {
  past: string[];
  text: string;
  future: string[];
  /** What was edited last, and when: typing is undone in one go. */
  tag: string | null;
  at: number;
}

const LONGEST = 200;
const ONE_GO_MS = 1200;

export const begin = (text: string): History => ({ past: [], text, future: [], tag: null, at: 0 });

/** Takes a new text. Edits with one `tag` that follow each other closely are one step back. */
export function record(history: History, text: string, tag: string | null, now: number): History {
  if (text === history.text) return history;
  const goesOn = tag !== null && tag === history.tag && now - history.at < ONE_GO_MS;
  const past = goesOn ? history.past : [...history.past, history.text].slice(-LONGEST);
  return { past, text, future: [], tag, at: now };
}

export function undo(history: History): History {
  const text = history.past.at(-1);
  if (text === undefined) return history;
  return {
    past: history.past.slice(0, -1),
    text,
    future: [history.text, ...history.future],
    tag: null,
    at: 0,
  };
}

export function redo(history: History): History {
  const [text, ...future] = history.future;
  if (text === undefined) return history;
  return { past: [...history.past, history.text], text, future, tag: null, at: 0 };
}
