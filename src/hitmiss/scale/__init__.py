"""Trials beyond memory: shards counted one by one, their tallies merged, the figures of all trials read from the merger."""
