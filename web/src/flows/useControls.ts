import { useState } from "react";
import { useVerb, type Verb } from "#/api/documents";
import type { AnyDocument, Kind } from "#/api/kinds";
import { done } from "#/components/notify";

/** The verbs that make sense for a flow as it is, the most likely first. */
export function verbsFor({ status }: Pick<AnyDocument, "status">): Verb[] {
  switch (status) {
    case "active":
      return ["pause", "restart", "stop"];
    case "paused":
      return ["resume", "stop"];
    case "stopped":
    case "completed":
    case "failed":
      return ["start"];
    default:
      return [];
  }
}

export const VERBS: Record<Verb, { label: string; about: string; doing: string; done: string }> = {
  pause: {
    label: "Pause",
    about: "It ends after the batch in hand and keeps its place.",
    doing: "Pausing: the batch in hand is delivered first.",
    done: "is paused",
  },
  resume: {
    label: "Resume",
    about: "It goes on where it was paused.",
    doing: "Resuming: it is checked, then a worker takes it.",
    done: "has been resumed",
  },
  stop: {
    label: "Stop",
    about: "It ends after the batch in hand, until it is started again.",
    doing: "Stopping: the batch in hand is delivered first.",
    done: "is stopped",
  },
  start: {
    label: "Start",
    about: "It goes on where it ended.",
    doing: "Starting: it is checked, then a worker takes it.",
    done: "has been started",
  },
  restart: {
    label: "Restart",
    about: "It ends after the batch in hand and begins again from there.",
    doing: "Restarting: the batch in hand is delivered first.",
    done: "has been restarted",
  },
};

/** What the buttons of a flow do, what is under way, and what was refused. */
export function useControls(kind: Kind, id: string) {
  const verb = useVerb();
  const [last, setLast] = useState<Verb | null>(null);
  const act = (next: Verb) => {
    setLast(next);
    verb.mutate(
      { kind, id, verb: next },
      { onSuccess: (found) => done(`${kind.one} ${found.name} ${VERBS[next].done}.`) },
    );
  };
  return {
    act,
    pending: verb.isPending ? last : null,
    refused: verb.error && last ? { verb: last, error: verb.error } : null,
    dismiss: verb.reset,
  };
}

export type Controls = ReturnType<typeof useControls>;
