import type { Schemas } from "#/api/client";

/** What a person may do; each role includes the ones before it. */
export type Role = Schemas["UserInfo"]["role"];

export const ROLES: readonly Role[] = ["viewer", "operator", "editor", "admin"];

/** What a token may do: `ingest` only sends events to one source, `worker` only runs flows for the server. */
export type TokenRole = Schemas["TokenInfo"]["role"];

export type SessionUser = Omit<Schemas["SessionUser"], "role"> & { role: Role };

/** Who uses the app, and how one logs in. Only people have sessions, so a role is one of theirs. */
export type Session = Omit<Schemas["SessionInfo"], "user"> & { user: SessionUser | null };

export type User = Schemas["UserInfo"];
export type NewUser = Schemas["NewUser"];
export type UserChange = Schemas["UserChange"];
export type Token = Schemas["TokenInfo"];
export type NewToken = Schemas["NewToken"];
export type AuditEntry = Schemas["AuditEntry"];
