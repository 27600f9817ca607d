"""The command `drill`: pipelines on a cluster of processes that are killed, frozen and isolated."""
