import type { Role, Session } from "#/access/types";

/** A server where people log in, and nobody has. */
export const NO_SESSION: Session = { authentication: "on", user: null, csrf: null, oidc: null, setup: false };

/** Somebody with a role who has logged in. */
export const session = (role: Role, name = "anna"): Session => ({
  ...NO_SESSION,
  user: { name, role, via: "password" },
  csrf: "token-of-the-session",
});
