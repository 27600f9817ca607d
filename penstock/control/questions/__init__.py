"""Requests that only a process with Spark can answer: sent by the server, answered by a worker."""
