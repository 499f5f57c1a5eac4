"""People judge items: a queue with leases, a page for it, and verdicts that become trials."""
