import type { QueryClient } from "@tanstack/react-query";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { unmarkDeleted } from "./deleted";
import { documentKey, drop, listKey, one, put } from "./documents";
import { type AnyDocument, KINDS, type Kind, type KindName } from "./kinds";
import { takeOverview } from "./overview";
import { readSession } from "./session";

/** `lost` also while the server has not answered yet after it was gone. */
export type Connection = "connecting" | "open" | "lost";

let connection: Connection = "connecting";
const listeners = new Set<() => void>();

function become(next: Connection): void {
  if (next === connection) return;
  connection = next;
  for (const listener of listeners) listener();
}

export function useConnection(): Connection {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => connection,
  );
}

interface ServerEvent {
  kind: string;
  name: string;
  type: string;
  data: Record<string, unknown>;
}

/** Keeps every page up to date for as long as it is mounted: once, at the root. */
export function useLive(): void {
  const queries = useQueryClient();
  useEffect(() => {
    const ends = [followEvents(queries), followOverview()];
    return () => {
      for (const end of ends) end();
    };
  }, [queries]);
}

/**
 * An EventSource that comes back by itself, also where browsers give up (an answer that is no event stream,
 * as a proxy sends it while the server restarts).
 */
export function follow(
  url: string | (() => string),
  handlers: Record<string, (event: MessageEvent<string>) => void>,
  notice: { opened?: (again: boolean) => void; lost?: () => void } = {},
): () => void {
  let source: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let opened = false;
  const open = () => {
    source = new EventSource(typeof url === "function" ? url() : url);
    source.onopen = () => {
      notice.opened?.(opened);
      opened = true;
    };
    source.onerror = () => {
      notice.lost?.();
      if (source?.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(open, 1000);
      readSession().catch(() => undefined); // a browser does not say why: the session may have ended
    };
    for (const [type, handler] of Object.entries(handlers)) {
      source.addEventListener(type, handler as EventListener);
    }
  };
  open();
  return () => {
    clearTimeout(timer);
    source?.close();
  };
}

function followEvents(queries: QueryClient): () => void {
  const take = (event: MessageEvent<string>) => {
    void absorb(queries, JSON.parse(event.data) as ServerEvent);
  };
  return follow(
    "/events",
    {
      created: take,
      updated: take,
      deleted: take,
      status: take,
      joined: take,
      left: take,
      gap: () => void queries.invalidateQueries(),
    },
    {
      opened: (again) => {
        become("open");
        if (again) void queries.invalidateQueries(); // what happened meanwhile is not known in full
      },
      lost: () => become("lost"),
    },
  );
}

function followOverview(): () => void {
  return follow("/overview/follow", {
    overview: (event) => takeOverview(JSON.parse(event.data), true),
    change: (event) => takeOverview(JSON.parse(event.data), false),
  });
}

async function absorb(queries: QueryClient, event: ServerEvent): Promise<void> {
  if (event.kind === "Worker") {
    await queries.invalidateQueries({ queryKey: ["workers"] });
    return;
  }
  const kind = KINDS[event.kind as KindName];
  if (kind === undefined) return;
  const id = String(event.data.id ?? idOf(event.name));
  void queries.invalidateQueries({ queryKey: ["topology"] });
  if (isFlood(queries, kind)) return;
  if (event.type === "created") unmarkDeleted(`/${kind.place}/${id}`);
  if (event.type === "deleted") {
    drop(queries, kind, id);
  } else if (event.type === "status" && !isShown(queries, kind, id)) {
    patch(queries, kind, id, event.data);
  } else {
    await refetch(queries, kind, id);
  }
}

const FLOOD = 20;
const FLOOD_MS = 1000;
const floods = new Map<Kind, { count: number; timer: ReturnType<typeof setTimeout> }>();

/** Whether so many documents of a kind change at once that all of them are asked for, once it is over. */
function isFlood(queries: QueryClient, kind: Kind): boolean {
  const flood = floods.get(kind);
  const count = (flood?.count ?? 0) + 1;
  clearTimeout(flood?.timer);
  const timer = setTimeout(() => {
    floods.delete(kind);
    if (count <= FLOOD) return;
    void queries.invalidateQueries({ queryKey: listKey(kind.place) });
    void queries.invalidateQueries({ queryKey: ["document", kind.place] });
    void queries.invalidateQueries({ queryKey: ["below", kind.place] });
  }, FLOOD_MS);
  floods.set(kind, { count, timer });
  return count > FLOOD;
}

const idOf = (name: string) => name.trim().toLowerCase().replaceAll(/\s/g, "_");

const isShown = (queries: QueryClient, kind: Kind, id: string) =>
  queries.getQueryState(documentKey(kind.place, id)) !== undefined;

/** A status alone does not need the whole document again: lists have thousands of them. */
function patch(queries: QueryClient, kind: Kind, id: string, data: Record<string, unknown>): void {
  const { status, phase, error } = data as Partial<AnyDocument>;
  queries.setQueryData<AnyDocument[]>(listKey(kind.place), (before) =>
    before?.map((each) => (each.id === id ? { ...each, status, phase, error } : each)),
  );
}

async function refetch(queries: QueryClient, kind: Kind, id: string): Promise<void> {
  void queries.invalidateQueries({ queryKey: ["below", kind.place, id] });
  if (!isShown(queries, kind, id) && queries.getQueryData(listKey(kind.place)) === undefined) return;
  try {
    put(queries, kind, await one(kind, id));
  } catch {
    void queries.invalidateQueries({ queryKey: listKey(kind.place) }); // it may be gone already
  }
}
