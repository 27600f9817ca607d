import { Badge } from "@mantine/core";

const COLORS: Record<string, string> = {
  active: "teal",
  paused: "yellow",
  completed: "blue",
  failed: "red",
  stopped: "gray",
};

const PHASES: Record<string, string> = {
  waiting: "Waiting for a worker, or for its turn to start.",
  starting: "Starting.",
  running: "Running.",
  draining: "Stops after the current batch.",
  backing_off: "Failed; a retry is scheduled.",
  stalled: "Not processing events: attempts fail, or the backlog grows and no batch finishes.",
};

/** Colors of the phases in which a flow that should run does not. */
const UNSETTLED: Record<string, string> = {
  waiting: "blue",
  starting: "blue",
  draining: "blue",
  backing_off: "orange",
  stalled: "red",
};

/** How a flow is in a word: its phase while it should run and does not, else its status. */
export function stateWord(status: string, phase?: string | null): string {
  return status === "active" && phase && phase !== "running" ? phase.replace("_", " ") : status;
}

/** How something that runs is: the word as well as the colour says it. */
export function StatusBadge({ status, phase }: { status: string | null | undefined; phase?: string | null }) {
  if (!status) {
    return (
      <Badge variant="outline" color="gray" tt="none" title="Doesn't run on its own: pipelines refer to it.">
        definition
      </Badge>
    );
  }
  const unsettled = status === "active" ? UNSETTLED[phase ?? ""] : undefined;
  const about = PHASES[phase ?? ""];
  return (
    <Badge variant="light" color={unsettled ?? COLORS[status] ?? "gray"} tt="none" title={about ?? status}>
      {stateWord(status, phase)}
    </Badge>
  );
}
