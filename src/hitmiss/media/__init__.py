"""Sound and pictures from files and bytes."""
