"""`penstock convert`: configurations of other systems as Penstock documents.

A module for each system has a table from its fields to ours, and functions for the rest. `located.py` knows
the line of each value and which values were used: what no module has used is reported, so that nothing is
lost silently.
"""
