"""The commands. Modules that load data return models and never print; views print models and never load."""
