import type { Role, Session } from "#/access/types";

/** A server where people log in, and nobody has. */
export const NOBODY: Session = { authentication: "on", user: null, csrf: null, oidc: null, setup: false };

/** Somebody with a role who has logged in. */
export const session = (role: Role, name = "anna"): Session => ({
  ...NOBODY,
  user: { name, role, via: "password" },
  csrf: "token-of-the-session",
});
