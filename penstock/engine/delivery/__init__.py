"""Delivery: a micro-batch is computed once, then its sinks read it, under the commit policy of the flow."""
