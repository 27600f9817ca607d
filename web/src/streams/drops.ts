/** The counters of a stream in words: what each reason means, and what to do about it. */
const REASONS: Record<string, { title: string; about: string; isLoss: boolean }> = {
  dropped_buffer_full: {
    title: "Dropped: buffer full",
    about:
      "Producers were faster than the disk. Raise buffer.max_events, or make producers wait with mode: block.",
    isLoss: true,
  },
  dropped_timeout: {
    title: "Dropped: timed out",
    about: "The buffer was still full after buffer.timeout_ms.",
    isLoss: true,
  },
  dropped_no_reader: {
    title: "Dropped: no reader",
    about: "A transient stream keeps nothing while it has no reader.",
    isLoss: true,
  },
  lost_restart: {
    title: "Lost in a restart",
    about:
      "The events were only in memory when Penstock restarted. A stream with wal.enabled keeps its events.",
    isLoss: true,
  },
  evicted_retention_ms: {
    title: "Removed by age",
    about: "The events were older than retention_ms.",
    isLoss: false,
  },
  evicted_retention_bytes: {
    title: "Removed by size",
    about: "The stream had more than retention_bytes.",
    isLoss: false,
  },
  evicted_max_segments: {
    title: "Removed by number of segments",
    about: "The stream had more than max_segments.",
    isLoss: false,
  },
  evicted_unread: {
    title: "Removed before they were read",
    about:
      "A reader was too slow. Raise the retention, speed up the reader, or make producers wait with on_full: block.",
    isLoss: true,
  },
  damaged: {
    title: "Damaged on disk",
    about: "penstock stream verify lists the damaged offsets; all other events are readable.",
    isLoss: true,
  },
  dead_letters: {
    title: "Schema mismatch",
    about: "The events are kept in the dead-letter stream, with the reason.",
    isLoss: false,
  },
  duplicates: {
    title: "Duplicates",
    about: "A producer resent a batch that was already stored. Nothing was appended twice.",
    isLoss: false,
  },
  skipped_by_readers: {
    title: "Skipped by readers",
    about: "Events were removed before readers reached them. The readers continued after the gap.",
    isLoss: true,
  },
  unended_transactions: {
    title: "Incomplete transactions",
    about:
      "The transaction was still open after batch.max_tx_ms, so its events were processed without the rest. Nothing was dropped.",
    isLoss: false,
  },
};

export interface Drop {
  reason: string;
  title: string;
  about: string;
  isLoss: boolean;
  events: number;
}

/** What has happened at all, losses first, the largest first. */
export function dropsOf(counters: Readonly<Record<string, number>>): Drop[] {
  return Object.entries(counters)
    .filter(([, events]) => events > 0)
    .map(([reason, events]) => {
      const known = REASONS[reason] ?? { title: reason.replaceAll("_", " "), about: "", isLoss: true };
      return { reason, events, ...known };
    })
    .sort((a, b) => Number(b.isLoss) - Number(a.isLoss) || b.events - a.events);
}

/** The name of a reason in a chart. */
export const dropTitle = (reason: string) => REASONS[reason]?.title ?? reason.replaceAll("_", " ");
