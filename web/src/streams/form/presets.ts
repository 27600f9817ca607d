/** The three goals that people set streams up for. */

type Spec = Record<string, unknown>;
type Setting = string | number | boolean;

export interface Preset {
  title: string;
  goal: string;
  /** Place in the spec → value; undefined: the default. */
  sets: [string[], Setting][];
}

const DAY_MS = 86_400_000;

export const PRESETS: Preset[] = [
  {
    title: "Replay and recovery",
    goal: "Every acknowledged event survives a power loss, and 30 days of events can be replayed.",
    sets: [
      [["wal", "enabled"], true],
      [["wal", "sync"], true],
      [["wal", "retention_ms"], 30 * DAY_MS],
      [["wal", "max_segments"], 1024],
      [["wal", "on_full"], "block"],
    ],
  },
  {
    title: "Lowest latency",
    goal: "Events pass through memory only. Unread events are lost in a restart.",
    sets: [
      [["wal", "enabled"], false],
      [["wal", "sync"], false],
      [["wal", "batch", "max_ms"], 0],
    ],
  },
  {
    title: "Disk pressure",
    goal: "Keeps one day of events, compressed, in few segments.",
    sets: [
      [["wal", "enabled"], true],
      [["wal", "retention_ms"], DAY_MS],
      [["wal", "compression"], "zstd"],
      [["wal", "max_segments"], 16],
    ],
  },
];

/** A spec with the settings of a preset, and all others as they are. */
export function applied(spec: Spec, { sets }: Preset): Spec {
  return sets.reduce((before, [path, value]) => put(before, path, value), spec);
}

/** Whether a spec has all of the settings of a preset; what is not written counts by its default. */
export function isApplied(effective: Spec, { sets }: Preset): boolean {
  return sets.every(([path, value]) => get(effective, path) === value);
}

function put(spec: Spec, [first, ...rest]: string[], value: Setting): Spec {
  if (rest.length === 0) return { ...spec, [first!]: value };
  return { ...spec, [first!]: put((spec[first!] ?? {}) as Spec, rest, value) };
}

function get(spec: Spec, path: string[]): unknown {
  return path.reduce<unknown>((value, name) => (value as Spec | undefined)?.[name], spec);
}
