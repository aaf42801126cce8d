"""Live nodes under real faults: processes that are killed and stopped, links that lie, and a verdict afterwards."""
