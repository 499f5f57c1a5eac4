"""Turn trials of attacks and manipulations into Results: what each changes, and whether the attack worked."""
