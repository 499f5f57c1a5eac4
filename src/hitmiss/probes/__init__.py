"""What a corpus gives away without a detector: domains in embeddings, shortcuts in durations and levels."""
