"""What a long command says where nobody watches a terminal: nothing at first, then what it is at."""

import threading

from rich.console import Console

from cubecast.cli.screen import ProgressLines, stages
from cubecast.experiments.sweep.progress import Snapshot
from cubecast.report.sweeps import sweep_bar


def test_a_quick_command_says_nothing(capsys):
    with stages("reading") as tell:
        tell("judging")
    assert capsys.readouterr().err == ""


def test_a_long_one_says_which_stage_it_is_at():
    told: list[str] = []
    heard = threading.Event()

    def write(line: str) -> None:
        told.append(line)
        heard.set()

    with ProgressLines("reading", write, first=0.0) as lines:
        assert heard.wait(30)
        lines.tell("judging")
    assert told == ["cubecast: reading (0 s so far)"]


def test_a_sweep_tells_every_tenth_of_its_points_to_a_file(tmp_path):
    with (tmp_path / "log").open("w") as file, sweep_bar(Console(file=file, width=200), "grow", {}) as listen:
        for finished in range(21):
            listen(Snapshot(20, finished, (), at=1000.0 + finished))
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[0] == "cubecast: sweep grow: 2 of 20 points, 2 s so far"
    assert len(lines) == 9
