"""A board: systems × data sets, each number with its interval, ranked on shared draws."""
