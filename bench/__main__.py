"""`make bench`: every benchmark in its short form. `python -m bench.NAME --help` tells what more each can do."""

from importlib import import_module
from pathlib import Path


def main() -> None:
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        print(f"\n== {path.stem}", flush=True)
        import_module(f"bench.{path.stem}").main([])


if __name__ == "__main__":
    main()
