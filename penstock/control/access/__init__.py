"""Who may do what: users, sessions, tokens, log-ins and the audit trail. Knows no HTTP."""
