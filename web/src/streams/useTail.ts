import { useEffect, useRef, useState } from "react";
import { parse } from "#/api/json";
import { follow } from "#/api/live";
import type { Gap, StreamEvent } from "./api";
import { kept, type Line } from "./tailing";

/** Between two renderings: a stream may be much faster than eyes are. */
const PACE_MS = 250;

export interface Tail {
  lines: Line[];
  /** The offset after the last event that came. */
  next: number | null;
  lost: boolean;
  clear: () => void;
}

/**
 * The events of a stream as they come, from an offset on. While it is paused the server is not asked; it goes on
 * where it was, so that nothing is left out unless it was removed meanwhile, which is then told as a gap.
 */
export function useTail(id: string, from: number, filter: string, paused: boolean): Tail {
  const [lines, setLines] = useState<Line[]>([]);
  const [next, setNext] = useState<number | null>(null);
  const [lost, setLost] = useState(false);
  const place = useRef(from);
  useEffect(() => {
    if (paused) return;
    let waiting: Line[] = [];
    const flush = () => {
      if (waiting.length === 0) return;
      const more = waiting;
      waiting = [];
      setLines((before) => kept(before, more));
      setNext(place.current);
    };
    const pace = setInterval(flush, PACE_MS);
    const end = follow(
      () => {
        const query = new URLSearchParams({ position: `offset:${place.current}` });
        if (filter) query.set("filter", filter);
        return `/streams/${encodeURIComponent(id)}/tail?${query}`;
      },
      {
        events: (message) => {
          for (const event of parse(message.data) as StreamEvent[]) waiting.push({ at: event.offset, event });
          place.current = Number(message.lastEventId);
        },
        gap: (message) => {
          const gap = JSON.parse(message.data) as Gap;
          waiting.push({ at: gap.first, gap });
          place.current = gap.next;
        },
      },
      { opened: () => setLost(false), lost: () => setLost(true) },
    );
    return () => {
      clearInterval(pace);
      end();
      flush();
    };
  }, [id, filter, paused]);
  return { lines, next, lost, clear: () => setLines([]) };
}
