import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, body } from "#/api/client";
import { CHANGED, readSession, takeSession } from "#/api/session";
import type { NewToken, NewUser, Session, UserChange } from "./types";

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
        ? body(api.POST("/session", { body: login }))
        : body(api.POST("/session/setup", { body: { secret, ...login } })),
    onSuccess: (session) => {
      queries.clear();
      takeSession(session as Session);
      tellOtherTabs();
    },
  });
}

export function useLogout() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => body(api.DELETE("/session")),
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
    mutationFn: (change: { current: string; new: string }) =>
      body(api.PUT("/session/password", { body: change })),
    onSuccess: () => readSession(),
  });
}

const USERS = ["users"] as const;

export function useUsers() {
  return useQuery({
    queryKey: USERS,
    queryFn: async () => (await body(api.GET("/users"))).users,
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
  const add = useMutation({
    mutationFn: (user: NewUser) => body(api.POST("/users", { body: user })),
    onSuccess,
  });
  const change = useMutation({
    mutationFn: ({ name, ...rest }: UserChange & { name: string }) =>
      body(api.PATCH("/users/{name}", { params: { path: { name } }, body: rest })),
    onSuccess,
  });
  const remove = useMutation({
    mutationFn: (name: string) => body(api.DELETE("/users/{name}", { params: { path: { name } } })),
    onSuccess,
  });
  return { add, change, remove };
}

const TOKENS = ["tokens"] as const;

export function useTokens() {
  return useQuery({
    queryKey: TOKENS,
    queryFn: async () => (await body(api.GET("/tokens"))).tokens,
  });
}

/** Creates a token, whose secret is in the answer and nowhere else, or revokes one. */
export function useTokenActions() {
  const queries = useQueryClient();
  const onSuccess = () => queries.invalidateQueries({ queryKey: TOKENS });
  const create = useMutation({
    mutationFn: (token: NewToken) => body(api.POST("/tokens", { body: token })),
    onSuccess,
  });
  const revoke = useMutation({
    mutationFn: (id: string) => body(api.DELETE("/tokens/{id}", { params: { path: { id } } })),
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
      const { user, action, target } = filter;
      const query = {
        user: user || undefined,
        action: action || undefined,
        target: target || undefined,
        before: before ?? undefined,
        limit: PAGE,
      };
      return body(api.GET("/audit", { params: { query } }));
    },
    placeholderData: keepPreviousData,
    staleTime: 0,
  });
}
