"""Delivery: a micro-batch is computed once, then delivered to its sinks under the flow's commit policy."""
