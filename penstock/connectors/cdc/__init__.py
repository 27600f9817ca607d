"""Shared parts of the change data capture sources: the columns of a change, its envelopes, and its ids."""
