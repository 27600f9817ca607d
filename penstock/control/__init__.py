"""Deciding what runs where: the registry, the coordinator, workers and the life of a flow."""
