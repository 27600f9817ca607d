"""The resources that documents may access: files, servers, Spark formats and variables."""

from penstock.policy.policy import UNRESTRICTED, Policy

__all__ = ["UNRESTRICTED", "Policy"]
