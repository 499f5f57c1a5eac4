"""Trials to results: measure, compare, rank, gate, pair."""
