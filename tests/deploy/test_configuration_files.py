"""The example file and the documentation say what the dataclasses say. `pytest tests/deploy --rewrite` renews them."""

import re
from pathlib import Path

import pytest

from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.fields import leaves
from cubecast.net.settings.resolve import EXAMPLE_HEADING, Sources, example, reference, resolve
from support.sources import ROOT

EXAMPLE = ROOT / "deploy" / "cubecast.toml"
DOCUMENT = ROOT / "docs" / "configuration.md"
BEGIN, END = "<!-- settings -->\n", "<!-- end of settings -->\n"


def same(path: Path, wanted: str, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--rewrite"):
        path.write_text(wanted)
    assert path.read_text() == wanted, f"{path} is not what the settings say; run pytest tests/deploy --rewrite"


def test_the_example_has_every_setting(request: pytest.FixtureRequest):
    same(EXAMPLE, example(NodeConfig, EXAMPLE_HEADING), request)


def test_the_example_is_the_defaults():
    assert resolve(NodeConfig, Sources(EXAMPLE)).config == NodeConfig()


def test_the_document_has_every_setting(request: pytest.FixtureRequest):
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    same(DOCUMENT, before + BEGIN + reference(NodeConfig) + END + rest.partition(END)[2], request)


def test_what_is_commented_out_in_the_example_is_what_has_no_default():
    commented = re.findall(r"(?m)^# (\w+) =$", EXAMPLE.read_text())
    without = [key.rpartition(".")[2] for key, leaf in leaves(NodeConfig).items() if leaf.default is None]
    assert sorted(commented) == sorted(without)
