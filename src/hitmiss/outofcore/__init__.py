"""Evaluation beyond memory: the counting plan, the engines that run it, tallies, sketches and merging."""
