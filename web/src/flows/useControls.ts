import { useState } from "react";
import { useVerb, type Verb } from "#/api/documents";
import type { AnyDocument, Kind } from "#/api/kinds";
import { capital } from "#/components/format";
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
    about: "Stops after the current batch and keeps its position.",
    doing: "Pausing after the current batch…",
    done: "paused",
  },
  resume: {
    label: "Resume",
    about: "Continues from where it was paused.",
    doing: "Resuming: checking the document, then starting on a worker…",
    done: "resumed",
  },
  stop: {
    label: "Stop",
    about: "Stops after the current batch, until it is started again.",
    doing: "Stopping after the current batch…",
    done: "stopped",
  },
  start: {
    label: "Start",
    about: "Continues from where it stopped.",
    doing: "Starting: checking the document, then starting on a worker…",
    done: "started",
  },
  restart: {
    label: "Restart",
    about: "Stops after the current batch and starts again from there.",
    doing: "Restarting after the current batch…",
    done: "restarted",
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
      { onSuccess: (found) => done(`${capital(kind.one)} ${found.name} ${VERBS[next].done}.`) },
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
