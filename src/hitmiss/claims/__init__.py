"""Open a run as a user writes it, and verify published claims."""
