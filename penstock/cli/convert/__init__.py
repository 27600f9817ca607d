"""`penstock convert`: configurations of other systems as Penstock documents.

The module of a system has a table that maps its fields to ours, and functions for the rest. `located.py`
tracks the line of each value and whether it was used: unused values are reported, so that nothing is lost
silently.
"""
