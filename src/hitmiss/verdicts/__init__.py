"""What is told of verdicts beside the metrics: stability over trials, reliability, latency, and people beside the system."""
