"""The commands. Modules that load return models and never print; views take a model and never load."""
