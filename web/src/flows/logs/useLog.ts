import { useCallback, useEffect, useRef, useState } from "react";
import { api, body } from "#/api/client";
import type { Kind } from "#/api/kinds";
import { follow } from "#/api/live";
import { below } from "../api";
import { appended, type Level, type LogLine, MOST_LINES } from "./lines";

/** The log of a flow as it is written. While it is paused, new lines are held back and counted. */
export function useLog(kind: Kind, id: string, level: Level) {
  const [lines, setLines] = useState<LogLine[] | null>(null);
  const [paused, setPaused] = useState(false);
  const [held, setHeld] = useState(0);
  const behind = useRef<LogLine[]>([]);
  const isPaused = useRef(paused);
  isPaused.current = paused;

  const show = useCallback((next: LogLine[]) => {
    behind.current = next;
    setLines(next);
    setHeld(0);
  }, []);

  useEffect(() => {
    let again = false;
    behind.current = [];
    setLines(null);
    const url = `/${kind.place}/${encodeURIComponent(id)}/logs/follow?level=${level}`;
    return follow(
      url,
      {
        lines: (event) => {
          const more = JSON.parse(event.data) as LogLine[];
          const before = behind.current.length;
          behind.current = appended(behind.current, more, again);
          again = false;
          if (isPaused.current) {
            setHeld((held) => held + Math.max(behind.current.length - before, more.length > 0 ? 1 : 0));
          } else {
            setLines(behind.current);
          }
        },
      },
      {
        opened: (reopened) => {
          again = reopened;
        },
      },
    );
  }, [kind.place, id, level]);

  const resume = () => {
    setPaused(false);
    show(behind.current);
  };
  /** Everything that the page can hold, from the server. */
  const loadMore = async () => {
    const params = { path: { name: id }, query: { limit: MOST_LINES, level } };
    show((await body(api.GET(below(kind, "/pipelines/{name}/logs"), { params }))).lines);
  };
  return { lines, paused, held, pause: () => setPaused(true), resume, loadMore };
}
