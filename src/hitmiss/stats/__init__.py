"""Uncertainty: bootstrap draws, intervals, binomial rates."""
