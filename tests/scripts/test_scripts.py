"""Scenario scripts: a text file of commands with the complete output each must give; --rewrite renews them."""

from pathlib import Path

import pytest

from support.script_world import ScriptWorld

HERE = Path(__file__).parent
SCRIPTS = sorted(HERE.glob("*.txt"))
RULE = "----"


def play(text: str) -> str:
    """The script with its outputs replaced by what happens now. Text before the first command is kept."""
    world = ScriptWorld()
    return "\n\n".join(_play_block(block, world) for block in text.strip().split("\n\n")) + "\n"


def _play_block(block: str, world: ScriptWorld) -> str:
    """`#` lines are remarks; the other lines above the rule are commands, what is below it is their output."""
    if all(line.startswith("#") for line in block.splitlines()):
        return block
    above = block.split(f"\n{RULE}")[0].splitlines()
    output = [seen for line in above if not line.startswith("#") for seen in world.execute(line)]
    return "\n".join([*above, RULE, *output])


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path: Path, request: pytest.FixtureRequest):
    text = path.read_text()
    played = play(text)
    if request.config.getoption("--rewrite"):
        path.write_text(played)
    else:
        assert played == text


def test_there_are_scripts():
    assert len(SCRIPTS) >= 8


def test_the_commands_are_listed():
    listed = (HERE / "README.md").read_text()
    for command in (attribute for attribute in dir(ScriptWorld) if attribute.startswith("do_")):
        usage = getattr(ScriptWorld, command).__doc__.partition(":")[0]
        assert f"`{usage}`" in listed, usage
