"""Control: the registry, the coordinator, workers and the lifecycle of a flow."""
