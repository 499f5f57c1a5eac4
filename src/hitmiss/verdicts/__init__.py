"""What is reported about verdicts besides the metrics: stability over trials, reliability, latency, review."""
