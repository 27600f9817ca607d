import { useCallback, useEffect, useRef, useState } from "react";
import { api, body, type Schemas } from "#/api/client";
import type { Tested } from "./cases";
import type { Sent } from "./samples";

/** What is tried on what. */
export type Asked = Sent & { document: Record<string, unknown>; given: Record<string, unknown> };

interface Outcome {
  /** What was asked, to see whether it is still the same. */
  key: string;
  asked: Asked;
  result: Tested | null;
  error: unknown;
}

export const keyOfAsked = (asked: Asked) => JSON.stringify(asked);

/**
 * Test runs, one at a time: the server ends a run that nobody waits for all the same, so what is asked meanwhile
 * waits, and only the latest of it is run.
 */
export function useTestRun() {
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [isRunning, setRunning] = useState(false);
  const waiting = useRef<Asked>(null);
  const isBusy = useRef(false);
  const aborting = useRef<AbortController>(null);
  useEffect(() => {
    aborting.current = new AbortController();
    return () => aborting.current?.abort();
  }, []);

  const run = useCallback(async (asked: Asked) => {
    waiting.current = asked;
    if (isBusy.current) return;
    isBusy.current = true;
    setRunning(true);
    const signal = aborting.current?.signal;
    for (let now = take(waiting); now && !signal?.aborted; now = take(waiting)) {
      const found = await tried(now, signal);
      if (!signal?.aborted) setOutcome(found);
    }
    isBusy.current = false;
    setRunning(false);
  }, []);

  return { outcome, isRunning, run };
}

function take(waiting: { current: Asked | null }): Asked | null {
  const found = waiting.current;
  waiting.current = null;
  return found;
}

async function tried(asked: Asked, signal: AbortSignal | undefined): Promise<Outcome> {
  const key = keyOfAsked(asked);
  try {
    const result = await body(api.POST("/test", { body: asked as unknown as Schemas["TestBody"], signal }));
    return { key, asked, result: result as Tested, error: null };
  } catch (error) {
    return { key, asked, result: null, error };
  }
}
