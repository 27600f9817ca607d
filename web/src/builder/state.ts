import { type Fault, read, type Value } from "#/documents/editing/yaml";
import { begin, type History, record, redo, undo } from "./history";
import type { Edit } from "./model";
import type { PartKey } from "./parts";

/** The one truth of the builder, its text, and what the canvas shows of it. */
export interface BuilderState {
  history: History;
  /** What the text says; while it says nothing that can be shown, what it said last. */
  value: Value;
  goodText: string;
  fault: Fault | null;
  selected: PartKey | null;
}

export type Action =
  | { do: "edit"; edit: (text: string) => Edit; tag: string | null; now: number }
  | { do: "type"; text: string; now: number }
  | { do: "undo" }
  | { do: "redo" }
  | { do: "restore" }
  | { do: "select"; key: PartKey | null }
  | { do: "load"; text: string; now: number };

export function start(text: string, goodText = text): BuilderState {
  const last = read(goodText);
  return { ...shown(begin(text), { value: last.value ?? {}, goodText, fault: null, selected: null }) };
}

/** What an action makes of the state. */
export function reduce(state: BuilderState, action: Action): BuilderState {
  const { history } = state;
  switch (action.do) {
    case "edit": {
      if (state.fault) return state; // the canvas shows an older text: an edit there would lose the newer one
      const { text, select } = action.edit(history.text);
      const next = shown(record(history, text, action.tag, action.now), state);
      return select === undefined ? next : { ...next, selected: select };
    }
    case "type":
      return shown(record(history, action.text, "text", action.now), state);
    case "load":
      return shown(record(history, action.text, null, action.now), state);
    case "undo":
      return shown(undo(history), state);
    case "redo":
      return shown(redo(history), state);
    case "restore":
      return shown(record(history, state.goodText, null, 0), state);
    case "select":
      return { ...state, selected: action.key };
  }
}

type Seen = Omit<BuilderState, "history">;

function shown(history: History, before: Seen): BuilderState {
  const { value, fault } = read(history.text);
  const seen =
    value === null ? { ...before, fault } : { ...before, value, goodText: history.text, fault: null };
  return { ...seen, history };
}
