"""Trials to trials with more columns: decisions, thresholds, bands, calibration, repeats, people."""
