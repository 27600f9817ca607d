"""Flows on Spark: the session, the plan, delivery and one run of a query."""
