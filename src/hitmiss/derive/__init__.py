"""Turn trials into trials with more columns: decisions, thresholds, bands, calibration."""
