"""Trials to Results: samples by run and slice, each metric's figure, interval and note, averages, and the signature."""
