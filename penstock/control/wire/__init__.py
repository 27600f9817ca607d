"""Workers without the registry's database: the control plane over HTTP."""
