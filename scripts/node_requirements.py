"""Print the part of requirements.lock that a node needs, hashes included: no Spark, no plots, no tools of developers.

Who asked for a package is what the lock itself says behind `# via`. Standard library only, so that it runs anywhere.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_VIA = re.compile(r"#(?:\s+via)?\s+([A-Za-z0-9._-]+)")


def needed(dependencies: list[str], lock: str) -> str:
    """The packages of the lock that these dependencies lead to, as the lock has them."""
    packages = [one for one in re.split(r"(?m)^(?=[A-Za-z0-9])", lock) if _NAME.match(one)]
    wanted = {_name(one) for one in dependencies}
    while True:
        more = {_name(one) for one in packages if wanted & {name.lower() for name in _VIA.findall(one)}} - wanted
        if not more:
            return "".join(one for one in packages if _name(one) in wanted)
        wanted |= more


def _name(requirement: str) -> str:
    found = _NAME.match(requirement)
    assert found is not None
    return re.sub(r"[._-]+", "-", found[0]).lower()


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    sys.stdout.write(needed(project["dependencies"], (ROOT / "requirements.lock").read_text()))
