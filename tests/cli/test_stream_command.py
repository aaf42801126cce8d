"""`stream pub` and `stream sub`: a publisher, receivers that relay, and what goes wrong."""

import json
import re

import pytest

from support.commands import DEADLINE, complaint, cubecast, running, running_node

HERE = ("--listen", "127.0.0.1:0")
LISTENS = re.compile(r"node \d+ of overlay '(.+)' listens on (\S+)")


def listening(process) -> str:
    found = LISTENS.match(process.line())
    assert found
    return found[2]


def test_lines_go_to_everybody_and_receivers_pass_them_on():
    with running_node("--protocol", "brisa") as hub:
        receivers = []
        with (
            running("stream", "sub", "numbers", "--join", hub.address, *HERE, "--count", 5, errors_too=True) as first,
            running(
                "stream", "sub", "numbers", "--join", hub.address, *HERE, "--count", 5, "--json", errors_too=True
            ) as second,
        ):
            receivers = [first, second]
            for one in receivers:
                listening(one)
            text = "".join(f"{number}\n" for number in range(5))
            done = cubecast(
                "stream", "pub", "numbers", "--join", hub.address, *HERE, "--wait-for", 2, "--json", text=text
            )
            assert json.loads(done.stdout) == {"topic": "numbers", "published": 5}
            assert [first.line() for _ in range(5)] == ["0", "1", "2", "3", "4"]
            heard = [json.loads(second.line()) for _ in range(5)]
            assert [(one["data"], one["counter"]) for one in heard] == [(str(n), n + 1) for n in range(5)]
            for one in receivers:
                assert one.process.wait(DEADLINE) == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("stream", "sub", "x"), "a receiver joins somebody: --join HOST:PORT"),
        (("stream", "sub", "x", "--join", "127.0.0.1:1"), "no member answers at 127.0.0.1:1"),
        (("stream", "pub", "x", "text", "--protocol", "epto"), "streams run brisa, not epto"),
        (("stream", "pub", "x", "text", "--parameter", "parents=5"), "parents is 5"),
        (("stream", "pub", "x", "text", "--parameter", "buffer_bytes=10"), "buffer_bytes takes"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(arguments: tuple[str, ...], expected: str):
    assert expected in complaint(*arguments)


def test_a_message_larger_than_the_buffer_is_refused_and_not_published():
    done = cubecast("stream", "pub", "x", "t" * 2000, *HERE, "--parameter", "buffer_bytes=1024")
    assert done.returncode == 2
    _, said = done.stderr.splitlines()
    assert re.search(
        r"a message of 20\d\d bytes, and only 1024 are kept for others: raise buffer_bytes. Nothing was published", said
    )
    assert not done.stdout


def test_another_overlay_and_another_stream_are_told_apart():
    with running_node("--protocol", "brisa", "--cluster", "ours") as hub:
        said = complaint("stream", "sub", "x", "--join", hub.address, *HERE, "--cluster", "theirs")
        assert "this node does not belong to cluster 'theirs'" in said
        with running(
            "stream", "pub", "flowing", "--join", hub.address, *HERE, "--cluster", "ours", "--stay", "text",
            "--wait-for", 1, errors_too=True,
        ) as publisher:  # fmt: skip
            listening(publisher)
            options = ("--cluster", "ours", "--within", 3)
            done = cubecast("stream", "sub", "other", "--join", hub.address, *HERE, *options)
            assert done.returncode == 2
            assert "no message of 'other' came within 3 s; what flows here is flowing" in done.stderr
            assert publisher.stop() == 0
