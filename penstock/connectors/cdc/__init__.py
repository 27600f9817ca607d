"""What sources of database changes share: the columns of a change, its envelopes, and its ids."""
