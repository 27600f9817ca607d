"""What documents may reach: files, servers, formats of Spark and variables."""

from penstock.policy.policy import UNRESTRICTED, Policy

__all__ = ["UNRESTRICTED", "Policy"]
