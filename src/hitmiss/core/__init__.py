"""What all parts share: errors, values, the question (ReadSpec, Design), trials, tallies, results and artifacts."""
