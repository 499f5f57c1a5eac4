"""Every kind of figure of trials, one file each: its numbers, its plate, its table, and how to read it."""
