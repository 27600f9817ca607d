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
};

/** How something that runs is: the word as well as the colour says it. */
export function StatusBadge({ status, phase }: { status: string | null | undefined; phase?: string | null }) {
  if (!status) {
    return (
      <Badge variant="outline" color="gray" tt="none" title="Doesn't run on its own: pipelines refer to it.">
        definition
      </Badge>
    );
  }
  const troubled = status === "active" && phase === "backing_off";
  const text = status === "active" && phase && phase !== "running" ? phase.replace("_", " ") : status;
  const about = PHASES[phase ?? ""];
  return (
    <Badge
      variant="light"
      color={troubled ? "orange" : (COLORS[status] ?? "gray")}
      tt="none"
      title={about ?? status}
    >
      {text}
    </Badge>
  );
}
