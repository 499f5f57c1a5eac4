"""Runs: a folder that survives crashes, and the loop that fills it."""
