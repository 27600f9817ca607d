"""What a person may declare: one model per kind, its defaults and its validation."""
