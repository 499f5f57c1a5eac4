"""Bridges to other tools: experiment trackers, scikit-learn, training loops. Nothing heavy is imported here."""
