"""Work on a Ray cluster."""
