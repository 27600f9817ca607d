import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { body, reach } from "#/api/client";
import { CHANGED, readSession, takeSession } from "#/api/session";
import type { AuditPage, NewToken, NewUser, Session, Token, User, UserChange } from "./types";

/** One request, with JSON both ways. */
function ask<T>(method: string, path: string, content?: object): Promise<T> {
  const answer = reach(path, {
    method,
    headers: content && { "Content-Type": "application/json" },
    body: content && JSON.stringify(content),
  }).then(async (response) => {
    const data = response.status === 204 ? undefined : await response.json().catch(() => undefined);
    return { data: data as T, error: data as unknown, response };
  });
  return body(answer);
}

export interface Login {
  name: string;
  password: string;
}

/** Logs in, or creates the first admin with the secret of the set-up link; nothing of another user stays. */
export function useLogin() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ secret, ...login }: Login & { secret?: string }) =>
      secret === undefined
        ? ask<Session>("POST", "/session", login)
        : ask<Session>("POST", "/session/setup", { secret, ...login }),
    onSuccess: (session) => {
      queries.clear();
      takeSession(session);
      tellOtherTabs();
    },
  });
}

export function useLogout() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => ask<void>("DELETE", "/session"),
    onSuccess: async () => {
      await readSession();
      queries.clear();
      tellOtherTabs();
    },
  });
}

const tellOtherTabs = () => localStorage.setItem(CHANGED, crypto.randomUUID());

/** Changes one's own password; one's other sessions end. */
export function usePassword() {
  return useMutation({
    mutationFn: (change: { current: string; new: string }) => ask<void>("PUT", "/session/password", change),
    onSuccess: () => readSession(),
  });
}

const USERS = ["users"] as const;

export function useUsers() {
  return useQuery({
    queryKey: USERS,
    queryFn: async () => (await ask<{ users: User[] }>("GET", "/users")).users,
  });
}

/** What an admin does with users; the list is up to date afterwards. */
export function useUserActions() {
  const queries = useQueryClient();
  // The user may be oneself, and the first user turns authentication on.
  const onSuccess = async () => {
    await readSession();
    await queries.invalidateQueries({ queryKey: USERS });
  };
  const add = useMutation({ mutationFn: (user: NewUser) => ask<User>("POST", "/users", user), onSuccess });
  const change = useMutation({
    mutationFn: ({ name, ...rest }: UserChange & { name: string }) =>
      ask<User>("PATCH", `/users/${encodeURIComponent(name)}`, rest),
    onSuccess,
  });
  const remove = useMutation({
    mutationFn: (name: string) => ask<void>("DELETE", `/users/${encodeURIComponent(name)}`),
    onSuccess,
  });
  return { add, change, remove };
}

const TOKENS = ["tokens"] as const;

export function useTokens() {
  return useQuery({
    queryKey: TOKENS,
    queryFn: async () => (await ask<{ tokens: Token[] }>("GET", "/tokens")).tokens,
  });
}

/** Creates a token, whose secret is in the answer and nowhere else, or revokes one. */
export function useTokenActions() {
  const queries = useQueryClient();
  const onSuccess = () => queries.invalidateQueries({ queryKey: TOKENS });
  const create = useMutation({
    mutationFn: (token: NewToken) => ask<Token & { secret: string }>("POST", "/tokens", token),
    onSuccess,
  });
  const revoke = useMutation({
    mutationFn: (id: string) => ask<void>("DELETE", `/tokens/${encodeURIComponent(id)}`),
    onSuccess,
  });
  return { create, revoke };
}

export interface AuditFilter {
  user: string;
  action: string;
  target: string;
}

const PAGE = 50;

/** Entries of the audit log, newest first, from one on that a page before named as the next. */
export function useAudit(filter: AuditFilter, before: number | null) {
  return useQuery({
    queryKey: ["audit", filter, before],
    queryFn: () => {
      const given = Object.entries({ ...filter, before: before ?? "" }).filter(([, value]) => value !== "");
      const query = new URLSearchParams([...given.map(([name, value]) => [name, String(value)])]);
      query.set("limit", String(PAGE));
      return ask<AuditPage>("GET", `/audit?${query}`);
    },
    placeholderData: keepPreviousData,
    staleTime: 0,
  });
}
