"""Lines of the log: one event each, names as fields, no storms, nothing that was not meant to be there."""

import io
import json
import logging

import pytest

from cubecast.net.settings.logs import BURST, MOST_KINDS, WINDOW, JsonLines, Repeats, TextLines
from support.cluster import cluster
from support.commands import running, running_node
from support.running import run


def record(message="lost %s", *arguments, **extra):
    made = logging.LogRecord("cubecast.net.members.peers", logging.WARNING, __file__, 1, message, arguments, None)
    made.__dict__.update(extra)
    return made


def test_a_json_line_has_names_as_fields():
    lines = JsonLines(lambda: {"node": 3, "incarnation": 1})
    line = json.loads(lines.format(record("lost the link to node %s", 7, peer=7, topic="a.b", payload=b"secret")))
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "cubecast.net.members.peers",
        "event": "lost the link to node 7",
        "node": 3,
        "incarnation": 1,
        "peer": 7,
        "topic": "a.b",
    }


def test_a_line_stays_one_line_whatever_is_in_it():
    text = JsonLines().format(record("refused: %s", 'a"b\nc'))
    assert "\n" not in text and json.loads(text)["event"] == 'refused: a"b\nc'


def test_nobody_else_can_end_a_line_or_steer_the_screen_that_shows_it():
    """Reasons and names of clients are chosen by whoever calls."""
    said = "no\n2026-01-01 ERROR forged\x1b[2J\x9b1m\u202e"
    text = TextLines().format(record("refused: %s", said, client="\x1b]0;title\x07"))
    assert text.endswith("refused: no\\n2026-01-01 ERROR forged\\x1b[2J\\x9b1m\\u202e client=\\x1b]0;title\\x07")
    line = JsonLines().format(record("refused: %s", said))
    assert line.isprintable() and json.loads(line)["event"] == f"refused: {said}"


def test_a_traceback_keeps_its_lines_and_nothing_else():
    made = record("failed")
    try:
        raise ValueError("\x1b[2J")
    except ValueError as error:
        made.exc_info = (ValueError, error, error.__traceback__)
    text = TextLines().format(made)
    assert text.count("\n") > 1 and "\x1b" not in text and text.endswith("ValueError: \\x1b[2J")


def test_text_for_people():
    line = TextLines(lambda: {"node": 3}).format(record("lost the link", peer=7))
    assert line.endswith("WARNING cubecast.net.members.peers: lost the link node=3 peer=7")


def test_repeats_are_counted_instead_of_written():
    now = [0.0]
    repeats = Repeats(lambda: now[0])
    assert [repeats.filter(record("lost %s", n, peer=1)) for n in range(BURST + 3)] == [True] * BURST + [False] * 3
    assert repeats.filter(record("lost %s", 9, peer=2)), "about somebody else"
    now[0] = WINDOW
    late = record("lost %s", 10, peer=1)
    assert repeats.filter(late) and late.repeated == 3
    assert not repeats.filter(record("lost %s", 11, peer=1)), "it goes on: one in a while"
    now[0] = 3 * WINDOW
    later = record("lost %s", 12, peer=1)
    assert repeats.filter(later) and later.repeated == 1


def test_kinds_are_forgotten_by_and_by():
    repeats = Repeats(lambda: 0.0)
    for number in range(2 * MOST_KINDS):
        repeats.filter(record("lost", peer=number))
    assert len(repeats._kinds) == MOST_KINDS


@pytest.fixture
def written():
    """What goes to the log of the package as JSON."""
    stream, root = io.StringIO(), logging.getLogger("cubecast")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.removeHandler(handler)
    root.setLevel(level)


def test_payloads_are_never_logged(written):
    async def main():
        async with cluster(2) as (one, two), two.subscribe("t") as heard:
            await heard.ready()
            await one.publish("t", "a secret payload", wait="stable")
            await two.close()

    run(main())
    assert any(line["event"].startswith("linked to node") and "peer" in line for line in written())
    assert not any("secret" in json.dumps(line) for line in written())


def test_a_node_logs_json_when_told_to():
    with running_node("--dimension", 3) as first:
        options = ("--log-format", "json", "--log-level", "info", "--join", first.address)
        with running("node", *options, errors_too=True) as second:
            linked, takes_part = json.loads(second.line()), json.loads(second.line())
            assert (linked["event"], linked["peer"], linked["node"]) == ("linked to node 0", 0, 1)
            assert takes_part["event"] == "takes part with nodes [0, 1]" and takes_part["incarnation"] == 0
