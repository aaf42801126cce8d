"""A live cluster of member processes under load, every delivery checked; what `cubecast bench` and `bench/` run."""
