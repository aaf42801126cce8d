"""`python -m cubecast` is `cubecast`, where its directory of programs is not on the path."""

from cubecast.cli import main

if __name__ == "__main__":
    main(prog_name="cubecast")
