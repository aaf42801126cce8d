"""`make bench`: every benchmark in its short form, each in a process of its own.

`python -m bench.NAME --help` tells what more each can do.
"""

import subprocess
import sys
from pathlib import Path


def main() -> None:
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        if "\ndef main(" in path.read_text():
            print(f"\n== {path.stem}", flush=True)
            subprocess.run([sys.executable, "-m", f"bench.{path.stem}"], check=True)


if __name__ == "__main__":
    main()
