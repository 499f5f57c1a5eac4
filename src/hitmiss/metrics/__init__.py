"""Metrics: arrays in, a number out."""
