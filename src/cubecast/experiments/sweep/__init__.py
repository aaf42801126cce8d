"""Sweeps: a grid of parameters times seeded runs, one Spark task per simulation, resumable.

definition (grid, from a TOML file or a named experiment) → plan (what is left, in which batches) → task (on executors)
→ store (one file per finished point) → results (one Parquet table).
"""
