import { useSyncExternalStore } from "react";
import type { Role, Session, SessionUser } from "#/access/types";
import { ROLES } from "#/access/types";

/** Everybody, while authentication is off. */
const LOCAL: SessionUser = { name: "local", role: "admin", via: "local" };

/** A server that asks nobody for a name. */
export const OPEN: Session = { authentication: "off", user: LOCAL, csrf: null, oidc: null, setup: false };

let session: Session | null = null;
let reading: Promise<Session> | null = null;
const listeners = new Set<() => void>();

/** The key that tells the other tabs of this browser that somebody has logged in or out. */
export const CHANGED = "penstock.session";

/** Takes what the server says about who uses the app; null as if it had never been asked. */
export function takeSession(next: Session | null): void {
  session = next;
  for (const listener of listeners) listener();
}

/** Asks the server who uses the app. Questions at the same time are one. */
export function readSession(): Promise<Session> {
  reading ??= ask().finally(() => {
    reading = null;
  });
  return reading;
}

async function ask(): Promise<Session> {
  const answer = await globalThis.fetch("/session", { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`the server answered ${answer.status} to GET /session`);
  const found = (await answer.json()) as Session;
  // The same as before is no news.
  if (JSON.stringify(found) !== JSON.stringify(session)) takeSession(found);
  return found;
}

/** The token that a request that changes something carries; null where none is needed. */
export const csrfToken = (): string | null => session?.csrf ?? null;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Who uses the app; null until the server has said it. */
export function useKnownSession(): Session | null {
  return useSyncExternalStore(subscribe, () => session);
}

/** Who uses the app, in pages that are shown only once that is known. */
export function useSession(): Session {
  return useKnownSession() ?? NO_SESSION;
}

const NO_SESSION: Session = { authentication: "on", user: null, csrf: null, oidc: null, setup: false };

/** The user of a session; null if somebody has to log in first. */
export const userOf = ({ authentication, user }: Session): SessionUser | null =>
  authentication === "off" ? (user ?? LOCAL) : user;

/** Whether a role is enough for what needs another. */
export const includes = (role: Role, needed: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(needed);

/** Whether the user may do what needs this role. */
export function useAllowed(needed: Role): boolean {
  const user = userOf(useSession());
  return user !== null && includes(user.role, needed);
}
