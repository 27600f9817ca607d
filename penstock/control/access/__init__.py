"""Authentication and authorization: users, sessions, tokens, log-ins and the audit trail. Uses no HTTP."""
