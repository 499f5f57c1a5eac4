"""Trials of attacks and manipulations to Results: what each changes, how sure that is, and whether the attack worked at all."""
