"""Side-by-side benchmarks. Each prints its ratios; none is a timed test."""
