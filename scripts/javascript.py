"""Make the one-file client of its modules: `cubecast.min.js`, for pages of any origin and for the npm package.

Each module becomes a function that is called once, in the order of the imports; comments and indentation go. Nothing is
renamed, so what an error says of a line can be found. Standard library only. `--check` says whether it is up to date.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STATIC = ROOT / "src" / "cubecast" / "net" / "web" / "static"
ENTRY = STATIC / "cubecast.js"
MADE = (STATIC / "cubecast.min.js", ROOT / "npm" / "cubecast.min.js")

_IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|class|const) (\w+)", re.MULTILINE)
_EXPORT_FROM = re.compile(r'^export \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
_COMMENT_OR_TEXT = re.compile(
    r"""/\*.*?\*/ | //[^\n]* | ("(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | `(?:\\.|[^`\\])*`)""",
    re.DOTALL | re.VERBOSE,
)


def bundle() -> str:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    modules = _in_order()
    names = {path: f"m{number}" for number, path in enumerate(modules)}
    parts = [f"/* cubecast {version}, Apache-2.0: the modules below client/ in one, by scripts/javascript.py */"]
    for path in modules:
        text, exported = path.read_text(), [name for _, name in _EXPORT.findall(path.read_text())]
        text = _IMPORT.sub(lambda found: f"const {{{_list(found[1])}}} = {names[_target(path, found[2])]};\n", text)  # noqa: B023
        text = _EXPORT.sub(r"\1 \2", text)
        parts.append(f"const {names[path]} = (() => {{\n{_small(text)}\nreturn {{{', '.join(exported)}}};\n}})();")
    for public, path in _EXPORT_FROM.findall(ENTRY.read_text()):
        parts.append(f"export const {{{_list(public)}}} = {names[_target(ENTRY, path)]};")
    return "\n".join(parts) + "\n"


def _in_order() -> list[Path]:
    """Every module after those it imports."""
    done: list[Path] = []

    def visit(path: Path, above: tuple[Path, ...]) -> None:
        if path in above:
            raise SystemExit(f"{path.name} imports itself, by way of {', '.join(one.name for one in above)}")
        if path not in done:
            for _, target in _IMPORT.findall(path.read_text()):
                visit(_target(path, target), (*above, path))
            done.append(path)

    for _, target in _EXPORT_FROM.findall(ENTRY.read_text()):
        visit(_target(ENTRY, target), ())
    return done


def _target(path: Path, named: str) -> Path:
    return (path.parent / named).resolve()


def _list(names: str) -> str:
    return ", ".join(name.strip() for name in names.split(",") if name.strip())


def _small(text: str) -> str:
    """Without comments, indentation and empty lines; texts stay as they are."""
    bare = _COMMENT_OR_TEXT.sub(lambda found: found[1] or "", text)
    return "\n".join(line.strip() for line in bare.splitlines() if line.strip())


if __name__ == "__main__":
    made = bundle()
    if "--check" in sys.argv:
        old = [str(path) for path in MADE if not path.is_file() or path.read_text() != made]
        sys.exit(f"not up to date, run scripts/javascript.py: {', '.join(old)}" if old else 0)
    for path in MADE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(made)
