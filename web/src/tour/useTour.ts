import { useLocalStorage } from "@mantine/hooks";
import { useNavigate } from "react-router";
import { useDocuments } from "#/api/documents";
import { KINDS } from "#/api/kinds";
import { useAllowed } from "#/api/session";
import { type Step, stepsOf } from "./steps";

/** "offered" until it is started or dismissed, then the number of the step, "done" at the end. */
type State = "offered" | "done" | number;

export interface Tour {
  isOffered: boolean;
  /** Null unless the tour is on. */
  step: Step | null;
  place: number;
  count: number;
  go: (place: number) => void;
  end: () => void;
}

/** The tour through the app. This browser remembers how far it is, and that it was dismissed. */
export function useTour(): Tour {
  const [state, setState] = useLocalStorage<State>({ key: "penstock.tour", defaultValue: "offered" });
  const navigate = useNavigate();
  const { data } = useDocuments(KINDS.Pipeline);
  const hasDemo = data?.some(({ id }) => id === "demo_orders") ?? false;
  // The last step is a page that only editors have.
  const steps = stepsOf(hasDemo).slice(0, useAllowed("editor") ? 5 : 4);
  const place = typeof state === "number" ? state : 0;
  return {
    isOffered: state === "offered",
    step: typeof state === "number" ? (steps[place] ?? null) : null,
    place,
    count: steps.length,
    go: (next) => {
      setState(next);
      void navigate(steps[next]!.to);
    },
    end: () => setState("done"),
  };
}
