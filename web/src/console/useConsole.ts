import { useEffect, useRef, useState } from "react";
import { ApiError, type Problem, problemsOf } from "#/api/client";
import { count, duration, plural } from "#/components/format";
import { failed } from "#/components/notify";
import { cancelQuery, type QueryResult, type Run, runQuery } from "./api";
import { useHistory } from "./history";

type Limits = Pick<Run, "limit" | "timeout_ms">;

/** Runs one query at a time, and keeps its result, its problems and the history. */
export function useConsole() {
  const [running, setRunning] = useState<{ id: string; since: number } | null>(null);
  const [isCancelling, setCancelling] = useState(false);
  const [result, setResult] = useState<QueryResult | null>(null);
  const [problems, setProblems] = useState<Problem[]>([]);
  const [outcome, setOutcome] = useState("");
  const { past, add, clear: forget } = useHistory();
  const seconds = useSeconds(running?.since ?? null);
  const shown = useRef("");
  // Nobody waits any more for a query of a page that was left.
  useEffect(() => () => void (shown.current && cancelQuery(shown.current).catch(() => undefined)), []);

  const end = (sql: string, words: string) => {
    setOutcome(words);
    add({ sql, at: Date.now(), outcome: words });
  };
  const run = async (sql: string, limits: Limits) => {
    const id = crypto.randomUUID();
    shown.current = id;
    setRunning({ id, since: Date.now() });
    setProblems([]);
    try {
      const found = await runQuery({ sql, ...limits, id });
      setResult(found);
      end(sql, `${plural(found.rows.length, "row")} in ${duration(found.ms)}`);
    } catch (error) {
      const isCancelled = error instanceof ApiError && error.code === "query_cancelled";
      setProblems(isCancelled ? [] : problemsOf(error));
      end(sql, isCancelled ? "Cancelled" : "Failed");
    } finally {
      shown.current = "";
      setRunning(null);
      setCancelling(false);
    }
  };
  const cancel = () => {
    if (running === null) return;
    setCancelling(true);
    cancelQuery(running.id).catch((error) => {
      setCancelling(false);
      if (!(error instanceof ApiError && error.status === 404)) failed("Could not cancel the query", error);
    });
  };
  return {
    run,
    cancel,
    forget,
    past,
    running: running !== null,
    isCancelling,
    result,
    problems,
    status: running ? `Running for ${count(seconds)} s` : outcome,
    /** The text has changed: marks in it would stand at the wrong place. */
    touched: () => problems.length > 0 && setProblems([]),
    clear: () => {
      setResult(null);
      setProblems([]);
      setOutcome("");
    },
  };
}

/** Whole seconds since a moment. */
function useSeconds(since: number | null): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (since === null) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [since]);
  return since === null ? 0 : Math.max(0, Math.floor((now - since) / 1000));
}
