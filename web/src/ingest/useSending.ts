import { useEffect, useRef, useState } from "react";
import { body, reach, type Schemas } from "#/api/client";
import { detect, FORMATS } from "#/testing/samples";

export type Accepted = Schemas["Accepted"];

export interface Order {
  text: string;
  times: number;
  /** Milliseconds from one request to the next. */
  pause: number;
}

export interface Progress {
  /** Requests that were acknowledged. */
  sent: number;
  events: number;
  last: Accepted | null;
  error: unknown;
}

const NOTHING: Progress = { sent: 0, events: 0, last: null, error: null };

/** Sends the same body several times, one request after the other, until it is stopped or refused. */
export function useSending(address: string) {
  const [progress, setProgress] = useState<Progress>(NOTHING);
  const [isSending, setSending] = useState(false);
  const stopping = useRef<AbortController>(null);
  useEffect(() => () => stopping.current?.abort(), []);

  const send = async ({ text, times, pause }: Order) => {
    const stopped = new AbortController();
    const { signal } = stopped;
    stopping.current = stopped;
    setProgress(NOTHING);
    setSending(true);
    let now = NOTHING;
    for (let sent = 0; sent < times && !signal.aborted; sent++) {
      if (sent > 0) await wait(pause, signal);
      if (signal.aborted) break;
      try {
        const last = await post(address, text);
        now = { sent: now.sent + 1, events: now.events + last.accepted, last, error: null };
      } catch (error) {
        now = { ...now, error };
        stopped.abort();
      }
      setProgress(now);
    }
    setSending(false);
  };
  return { progress, isSending, send, stop: () => stopping.current?.abort() };
}

function post(address: string, text: string): Promise<Accepted> {
  const answer = reach(address, {
    method: "POST",
    headers: { "Content-Type": FORMATS[detect(text)].type },
    body: text,
  }).then(async (response) => {
    const data = await response.json().catch(() => undefined);
    return { data: data as Accepted, error: data, response };
  });
  return body(answer);
}

const wait = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
