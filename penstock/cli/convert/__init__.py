"""`penstock convert`: configurations of other systems as Penstock documents.

The module of each system has a table from its fields to ours, and functions for the rest. `located.py` tracks
the line of each value and which values were used: unused values are reported, so that nothing is silently
lost.
"""
