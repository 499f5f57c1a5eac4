"""Bridges to what people already use: experiment trackers, scikit-learn, training loops. Nothing heavy is imported here."""
