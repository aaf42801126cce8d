"""The demonstration, smaller: live processes, one killed, one joined, and what the judges say."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from cubecast.check import check_directory
from cubecast.cli import main
from cubecast.experiments.demo import collect_conversation, converse
from cubecast.experiments.members import MemberGroup, RunFailed
from cubecast.pipeline.verify import verify
from support.running import run


@pytest.mark.spark
def test_a_conversation_with_a_crash_and_a_newcomer_is_valid(tmp_path: Path, spark):
    said: list[str] = []
    result = run(converse(tmp_path, 7, said.append, members=5, questions=10), 400)
    assert len(said) == 5 and (result["killed"], result["joined"]) == (2, 5)
    assert all(one["too_early"] == 0 and one["questions"] >= 10 for one in result["counted"].values())
    trace = collect_conversation(tmp_path, 7)
    assert check_directory(trace).to_json()["verdict"] == "VALID"
    assert verify(spark, [trace]).to_json()["verdict"] == "VALID"


def test_a_member_that_fails_ends_the_run_with_its_own_words(tmp_path: Path):
    async def failing():
        async with MemberGroup("cubecast.experiments.demo_talker", tmp_path) as group:
            await group.start("broken", join=["nowhere"], cluster="c", dimension=2, journal=str(tmp_path), seed=1)
            await group.until_all("ready", 60)

    with pytest.raises(RunFailed, match="'nowhere' is not an address"):
        run(failing(), 90)


def test_waiting_has_an_end(tmp_path: Path):
    async def waiting():
        async with MemberGroup("cubecast.experiments.demo_talker", tmp_path) as group:
            await group.until(lambda: False, 0.05, "what never happens")

    with pytest.raises(RunFailed, match="in vain for what never happens"):
        run(waiting())


def test_the_demonstration_removes_only_what_it_wrote(tmp_path: Path):
    (tmp_path / "letters").write_text("dear")
    ended = CliRunner().invoke(main, ["demo", "--out", str(tmp_path)])
    assert ended.exit_code == 2 and "letters, which no demonstration wrote" in ended.output
    assert (tmp_path / "letters").read_text() == "dear"
