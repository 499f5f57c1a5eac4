"""Simulated evaluations: data made by hitmiss' own code, for the demo, the tests and the benchmarks."""
