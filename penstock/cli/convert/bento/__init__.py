"""Configurations of Bento and Redpanda Connect."""
