"""Work on several processes or machines through Ray: joining a cluster, and sending calls to it."""
