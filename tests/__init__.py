"""Tests of Penstock; the directories below mirror those of `penstock`."""
