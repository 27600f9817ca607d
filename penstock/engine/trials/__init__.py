"""Test runs: sample events through the steps of a document."""
