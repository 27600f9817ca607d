"""Benchmarks: ratios within one run, on one machine, with an A/A control; see docs/benchmarks.md."""
