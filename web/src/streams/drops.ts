/** The counters of a stream in words: what each reason means, and what to do about it. */
const REASONS: Record<string, { title: string; about: string; isLoss: boolean }> = {
  dropped_buffer_full: {
    title: "Dropped: buffer full",
    about: "Producers were faster than the disk. Raise buffer.max_events, or let them wait with mode: block.",
    isLoss: true,
  },
  dropped_timeout: {
    title: "Dropped: waited too long",
    about: "Producers waited for buffer.timeout_ms, and there was still no room.",
    isLoss: true,
  },
  dropped_no_reader: {
    title: "Dropped: nobody read",
    about: "A transient stream keeps nothing while it has no reader.",
    isLoss: true,
  },
  lost_restart: {
    title: "Lost by a restart",
    about: "They were in memory when Penstock was restarted. A stream with wal.enabled keeps its events.",
    isLoss: true,
  },
  evicted_retention_ms: {
    title: "Removed by age",
    about: "Older than retention_ms. This is what retention is for.",
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
    about: "A reader was too slow. Keep more, speed it up, or let producers wait with on_full: block.",
    isLoss: true,
  },
  damaged: {
    title: "Damaged on disk",
    about: "penstock stream verify names the offsets; all others can be read.",
    isLoss: true,
  },
  dead_letters: {
    title: "Did not fit the schema",
    about: "They are kept in the dead-letter stream, with the reason.",
    isLoss: false,
  },
  duplicates: {
    title: "Sent twice",
    about: "A producer repeated a batch that had been kept. Nothing was appended twice.",
    isLoss: false,
  },
  skipped_by_readers: {
    title: "Skipped by readers",
    about: "They came too late for events that had been removed, and went on after the gap.",
    isLoss: true,
  },
  unended_transactions: {
    title: "Transactions that did not end in time",
    about: "Their events were processed without the rest after batch.max_tx_ms. Nothing was dropped.",
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
