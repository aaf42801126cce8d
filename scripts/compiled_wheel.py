"""The build hook of compiled wheels: the modules every frame passes through, as C that mypyc makes of the same sources.

    HATCH_BUILD_HOOK_ENABLE_CUSTOM=true pip install .

needs a C compiler. Without that variable wheels are pure Python, and nothing but speed is different. Which modules are
compiled is said in pyproject.toml. The sources are copied first: nothing is left behind in the tree, where a compiled
module would be imported instead of the source beside it after that was edited. Follows decision 0032.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledWheel(BuildHookInterface):  # type: ignore[type-arg]  # hatchling's own configuration class
    _copy: TemporaryDirectory[str]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._copy = TemporaryDirectory()
        root = Path(self._copy.name)
        shutil.copytree(Path(self.root) / "src" / "cubecast", root / "cubecast")
        modules = self._modules(root)
        self.app.display_info(f"compiling {len(modules)} modules, which takes about a minute")
        self._compile(root, modules)
        for library in [*root.glob("*.so"), *(root / "cubecast").rglob("*.so")]:
            build_data["force_include"][str(library)] = str(library.relative_to(root))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def _modules(self, root: Path) -> list[str]:
        found: set[str] = set()
        for pattern in self.config["modules"]:
            named = {str(path.relative_to(root)) for path in root.glob(pattern)}
            if not named:
                raise SystemExit(f"pyproject.toml wants {pattern} compiled, and there is no such module")
            found |= named
        return sorted(found - set(self.config["interpreted"]))

    def _compile(self, root: Path, modules: list[str]) -> None:
        command = [sys.executable, "-m", "mypyc", "--config-file", str(Path(self.root) / "pyproject.toml"), *modules]
        environment = {"MYPYC_OPT_LEVEL": "3", "MYPYC_DEBUG_LEVEL": "0"} | os.environ
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
        if done.returncode:
            said = done.stdout[-4000:] + done.stderr[-4000:]
            raise SystemExit(f"{said}\nmypyc could not compile cubecast; wheels without compiled modules work as well")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._copy.cleanup()
