"""`penstock drill`: runs pipelines on a cluster whose workers are killed, frozen and isolated."""
