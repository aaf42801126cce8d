"""The same metrics of runs that fit into memory, with pandas: no JVM starts, and small runs answer in seconds."""
