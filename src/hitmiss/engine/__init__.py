"""Turn trials into results: measure, compare, rank, gate, pair."""
