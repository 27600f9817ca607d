import {
  IconAlertOctagonFilled,
  IconCircleCheck,
  IconClockHour4,
  IconPlayerPauseFilled,
  IconPlayerPlayFilled,
  IconPlayerStopFilled,
  IconRefreshAlert,
} from "@tabler/icons-react";
import classes from "./topology.module.css";

const SIGNS = {
  running: { icon: IconPlayerPlayFilled, color: "teal" },
  waiting: { icon: IconClockHour4, color: "blue" },
  backing_off: { icon: IconRefreshAlert, color: "orange" },
  stalled: { icon: IconAlertOctagonFilled, color: "red" },
  failed: { icon: IconAlertOctagonFilled, color: "red" },
  paused: { icon: IconPlayerPauseFilled, color: "yellow" },
  stopped: { icon: IconPlayerStopFilled, color: "gray" },
  completed: { icon: IconCircleCheck, color: "blue" },
};

/** A status in little room: a sign, and a word unless all is well. */
export function NodeStatus({ status, phase }: { status: string | null | undefined; phase?: string }) {
  if (!status) return null;
  const name = status !== "active" ? status : phase !== undefined && phase in SIGNS ? phase : "waiting";
  const { icon: Icon, color } = SIGNS[name as keyof typeof SIGNS] ?? SIGNS.waiting;
  const word = name === "waiting" ? (phase ?? "waiting") : name.replace("_", " ");
  return (
    <span className={classes.status} style={{ color: `var(--mantine-color-${color}-text)` }}>
      <Icon size={12} aria-hidden />
      {name !== "running" && word}
    </span>
  );
}
