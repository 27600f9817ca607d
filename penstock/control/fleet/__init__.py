"""The fleet: workers, leases, and the lifecycle of a flow."""
