"""Beyond memory: the counting plan, the engines that carry it out, tallies, sketches and their merging."""
