import { Badge } from "@mantine/core";

const COLORS: Record<string, string> = {
  active: "teal",
  paused: "yellow",
  completed: "blue",
  failed: "red",
  stopped: "gray",
};

const PHASES: Record<string, string> = {
  waiting: "waits for a worker, or for its turn to start",
  starting: "is starting",
  running: "is running",
  draining: "ends after the batch in hand",
  backing_off: "has failed and will be tried again",
};

/** How something that runs is: the word as well as the colour says it. */
export function StatusBadge({ status, phase }: { status: string | null | undefined; phase?: string | null }) {
  if (!status) {
    return (
      <Badge
        variant="outline"
        color="gray"
        tt="none"
        title="It does not run by itself: pipelines refer to it."
      >
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
      title={about ? `It ${about}.` : status}
    >
      {text}
    </Badge>
  );
}
