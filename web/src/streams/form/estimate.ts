/** How much disk a stream will take, and which of its limits is reached first. */

export interface StreamSettings {
  wal: {
    enabled: boolean;
    retention_ms: number | null;
    retention_bytes: number | null;
    max_segments: number;
    segment_bytes: number;
    segment_ms: number;
    compression: "none" | "lz4" | "zstd";
  };
  buffer: { max_bytes: number; max_events: number; spill: boolean };
}

/** How large an event is on disk, where nothing is known: JSON and text compress about so well. */
export const ASSUMED: Record<StreamSettings["wal"]["compression"], number> = { none: 1, lz4: 0.5, zstd: 0.3 };

export interface Limit {
  name: string;
  /** How long events are kept by this limit alone. */
  ms: number;
  /** How much disk that is. */
  bytes: number;
}

/** The limits of a stream under a steady load, the first one that is reached in front. */
export function limits({ wal }: StreamSettings, eventsPerSecond: number, storedBytes: number): Limit[] {
  const perMs = (eventsPerSecond * storedBytes) / 1000;
  const found: Limit[] = [];
  const add = (name: string, ms: number) => found.push({ name, ms, bytes: ms * perMs });
  if (wal.retention_ms !== null) add("retention", wal.retention_ms);
  if (wal.retention_bytes !== null) add("retention bytes", wal.retention_bytes / perMs);
  // A segment is closed by its size or its age: few events make many small segments.
  add("max segments", wal.max_segments * Math.min(wal.segment_bytes / perMs, wal.segment_ms));
  return found.sort((one, other) => one.ms - other.ms);
}

export const isComplete = (settings: StreamSettings): boolean => {
  const { retention_ms, retention_bytes, max_segments, segment_bytes, segment_ms } = settings.wal;
  const caps = [retention_ms ?? 1, retention_bytes ?? 1, max_segments, segment_bytes, segment_ms];
  return caps.every((each) => typeof each === "number" && each > 0);
};
