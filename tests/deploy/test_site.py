"""`make docs`: the site is built without a warning, so without a dead link, and knows every public name."""

import subprocess
import sys
from pathlib import Path

import pytest
from sphinx.util.inventory import InventoryFile

import cubecast
from support.sources import ROOT


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_tells_every_public_name(tmp_path: Path):
    options = ("-q", "-W", "--keep-going", "-b", "html", "-c", str(ROOT / "docs" / "site"), "-d", str(tmp_path / "d"))
    words = (sys.executable, "-m", "sphinx", *options, str(ROOT), str(tmp_path / "site"))
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr

    assert "docs/index.html" in (tmp_path / "site" / "index.html").read_text()
    known = InventoryFile.loads((tmp_path / "site" / "objects.inv").read_bytes(), uri="").data
    told = {name.rpartition(".")[2] for kind in known if kind.startswith("py:") for name in known[kind]}
    public = {name for name in dir(cubecast) if not name.startswith("_")}
    assert public <= told, sorted(public - told)
    assert "incarnation" in (tmp_path / "site" / "searchindex.js").read_text()
