"""What a reproduction found, as data of this repository: docs/papers/checked/full.json, or quick.json with --quick.

    cubecast reproduce --out out/paper
    python scripts/checked.py out/paper [--quick] [--commit HASH]

Each experiment says by itself where it was run and from which commit, so that one can be renewed without the others.
"""

import argparse
import json
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CHECKED = ROOT / "docs" / "papers" / "checked"
SUFFIX = ".reproduction.json"
KEPT = ("ours", "interval", "verdict", "note", "explanation")


def checked(report: dict[str, Any], commit: str, day: str) -> dict[str, Any]:
    """One experiment: what it rests on, and what came out, by row."""
    return {
        "commit": commit,
        "date": day,
        "machine": machine(),
        "runs": report["runs"],
        "seed": report["seed"],
        "cpu_seconds": round(sum(report["cpu_seconds"].values())),
        "rows": {
            row["claim"]: {name: row.get(name) for name in KEPT}
            for row in report["rows"]
            if row["verdict"] != "not run"
        },
    }


def machine() -> str:
    return f"{os.cpu_count()} × {_processor()}, {platform.system()}, Python {platform.python_version()}"


def _processor() -> str:
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="what `cubecast reproduce --out` wrote")
    parser.add_argument("--quick", action="store_true", help="it was run with --quick")
    parser.add_argument("--commit", default="HEAD", help="of the sources that ran")
    given = parser.parse_args()
    asked = ["git", "rev-parse", "--short", given.commit]
    commit = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
    file = CHECKED / ("quick.json" if given.quick else "full.json")
    known = json.loads(file.read_text()) if file.exists() else {}
    for path in sorted(given.directory.glob(f"*{SUFFIX}")):
        report = json.loads(path.read_text())
        day = time.strftime("%Y-%m-%d", time.gmtime(path.stat().st_mtime))
        known[report["experiment"]] = checked(report, commit, day)
    CHECKED.mkdir(exist_ok=True)
    file.write_text(json.dumps(dict(sorted(known.items())), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
