"""Access over HTTP: the guard in front of every route, sessions, users, tokens and the audit trail."""
