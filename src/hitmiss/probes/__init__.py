"""What a corpus reveals without a detector: domains in embeddings, shortcuts in durations and levels."""
