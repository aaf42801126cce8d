"""What we depend on, written down (an SBOM in CycloneDX) and held against known vulnerabilities.

Exit codes: 0 nothing known · 1 something is vulnerable · 3 nobody could be asked, which is said in one line.
"""

import json
import subprocess
import sys
from pathlib import Path

LOCK = "requirements.lock"
CLEAN, VULNERABLE, UNKNOWN = 0, 1, 3
LONGEST = 300.0
"""Seconds for each of the tools."""


def judge(report: dict[str, object]) -> tuple[int, list[str]]:
    """The exit code and what to say, from pip-audit's JSON."""
    packages = report["dependencies"]
    assert isinstance(packages, list)
    found = [
        f"{one['name']} {one['version']}: {known['id']}, fixed in {', '.join(known['fix_versions']) or 'no version'}"
        for one in packages
        for known in one.get("vulns", [])
    ]
    skipped = [one["name"] for one in packages if "skip_reason" in one]
    if found:
        return VULNERABLE, found
    if not packages:
        return UNKNOWN, ["not audited: no packages"]
    if skipped:
        reason = f"{len(skipped)} of {len(packages)} packages are not known to the service, {skipped[0]} for one"
        return UNKNOWN, [f"not audited: {reason}"]
    return CLEAN, [f"{len(packages)} packages, no known vulnerabilities"]


def ask(tools: Path) -> tuple[int, list[str]]:
    words = [
        "-r",
        LOCK,
        "--disable-pip",
        "--require-hashes",
        "--progress-spinner",
        "off",
        "-f",
        "json",
        "--timeout",
        "10",
    ]
    try:
        ended = subprocess.run(
            [tools / "pip-audit", *words], capture_output=True, text=True, timeout=LONGEST, check=False
        )
        return judge(json.loads(ended.stdout))
    except subprocess.TimeoutExpired:
        return UNKNOWN, [f"not audited: the service did not answer for {LONGEST:.0f} s"]
    except ValueError:
        last = ended.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        return UNKNOWN, [f"not audited: the service cannot be reached ({last[0][:200]})"]


def write_sbom(tools: Path, path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    words = ["requirements", LOCK, "--pyproject", "pyproject.toml", "--output-reproducible", "--no-validate"]
    made = [tools / "cyclonedx-py", *words, "--of", "JSON", "-o", path]
    subprocess.run(made, check=True, timeout=LONGEST, capture_output=True)
    return f"{path}: {len(json.loads(path.read_text())['components'])} components"


def main() -> int:
    tools = Path(sys.executable).parent
    sys.stdout.write(write_sbom(tools, Path("out/sbom.json")) + "\n")
    code, lines = ask(tools)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return code


if __name__ == "__main__":
    sys.exit(main())
