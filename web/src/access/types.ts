/** What a person or a token may do; each role includes the ones before it. */
export type Role = "viewer" | "operator" | "editor" | "admin";

export const ROLES: readonly Role[] = ["viewer", "operator", "editor", "admin"];

/** `ingest` may only send events to one source, `worker` only run flows for the server. */
export type TokenRole = Role | "ingest" | "worker";

export interface SessionUser {
  name: string;
  role: Role;
  via: "local" | "password" | "oidc" | "token";
}

/** Who uses the app, and how one logs in. */
export interface Session {
  authentication: "on" | "off";
  user: SessionUser | null;
  csrf: string | null;
  oidc: { label: string } | null;
  /** There is no user yet: the first admin is to be created with the set-up link. */
  setup: boolean;
}

export interface User {
  name: string;
  role: Role;
  via: "password" | "oidc";
  disabled: boolean;
  created_at: string;
  last_login_at: string | null;
}

export interface NewUser {
  name: string;
  role: Role;
  password: string;
}

export interface UserChange {
  role?: Role;
  password?: string;
  disabled?: boolean;
}

export interface Token {
  id: string;
  name: string;
  role: TokenRole;
  source: string | null;
  user: string;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
}

export interface NewToken {
  name: string;
  role: TokenRole;
  source?: string;
  expires_in_days?: number;
}

export interface AuditEntry {
  id: number;
  at: string;
  user: string | null;
  via: string | null;
  address: string | null;
  action: string;
  target: string;
  status: number;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

export interface AuditPage {
  entries: AuditEntry[];
  next: number | null;
}
