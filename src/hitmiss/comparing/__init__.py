"""Runs against each other on the same questions: differences, tests, rankings, and the gates that stand on them."""
