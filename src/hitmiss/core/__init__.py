"""What everything shares: errors, values, the question (ReadSpec, Design), the trial table, tallies, results, artifacts."""
