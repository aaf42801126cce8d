"""The wheel in an environment that has what it depends on and nothing else, made without asking a network."""

import json
import os
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.sources import ROOT

PROJECT = "cubecast"


class PlainInstall:
    """Dependencies are links to what is installed here: those the wheel itself names, and those they name."""

    def __init__(self, directory: Path) -> None:
        wheels, venv = directory / "wheels", directory / "venv"
        _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", wheels)
        (self.wheel,) = wheels.glob("*.whl")
        _run(sys.executable, "-m", "venv", "--without-pip", venv)
        self.python, self.program = venv / "bin" / "python", venv / "bin" / PROJECT
        pip = (sys.executable, "-m", "pip", "--python", self.python, "--disable-pip-version-check")
        _run(*pip, "install", "--quiet", "--no-deps", "--no-index", self.wheel)
        (self.packages,) = venv.glob("lib/python*/site-packages")
        (metadata,) = self.packages.glob(f"{PROJECT}-*.dist-info")
        self.dependencies = _closure(Distribution.at(metadata))
        for one in self.dependencies:
            _link(one, self.packages)
        _run(*pip, "check")

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of this checkout is on the path."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CUBECAST_"))}
        return kept | {"PATH": f"{self.program.parent}{os.pathsep}{os.environ.get('PATH', '')}"}

    def run(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Outside the checkout."""
        return subprocess.run(
            list(map(str, words)),
            env=self.environment,
            cwd=self.packages,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def size(self) -> int:
        """Bytes of everything installed."""
        own = sum(path.stat().st_size for path in (self.packages / PROJECT).rglob("*") if path.is_file())
        return own + sum(_size(one) for one in self.dependencies)

    def evaluate(self, program: str, *arguments: str) -> object:
        """What a program there prints as JSON."""
        done = self.run(self.python, "-c", program, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)


def _run(*words: object) -> None:
    subprocess.run(list(map(str, words)), cwd=ROOT, check=True, capture_output=True, timeout=300)


def _closure(root: Distribution) -> list[Distribution]:
    found: dict[str, Distribution] = {}
    wanted, seen = [(root, "")], set()
    while wanted:
        current, extra = wanted.pop()
        needed = [Requirement(text) for text in current.requires or ()]
        for one in needed:
            if one.marker is not None and not one.marker.evaluate({"extra": extra}):
                continue
            name = canonicalize_name(one.name)
            found[name] = found.get(name) or distribution(name)
            for asked in {"", *one.extras} - {known for other, known in seen if other == name}:
                seen.add((name, asked))
                wanted.append((found[name], asked))
    return list(found.values())


def _link(one: Distribution, into: Path) -> None:
    tops = {file.parts[0] for file in one.files or () if file.parts[0] not in ("..", "__pycache__")}
    for top in tops:
        (into / top).symlink_to(Path(str(one.locate_file(top))))


def _size(one: Distribution) -> int:
    return sum(size for file in one.files or () if (size := file.size) is not None)
