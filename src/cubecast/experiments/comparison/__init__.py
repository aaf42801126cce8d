"""The systems of the papers side by side on one workload."""
