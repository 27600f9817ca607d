"""The runtime of a flow in a process: the session, a run of a query, its counters, log and failures."""
