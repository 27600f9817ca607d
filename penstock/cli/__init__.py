"""The CLI commands. Loaders return models and never print; views take a model and never load."""
