"""`request`, `serve`, and the ways to give `pub` what it publishes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands import DEADLINE, Running, RunningNode, complaint, cubecast, running, running_node


@pytest.fixture(scope="module")
def node() -> Iterator[RunningNode]:
    with running_node() as one:
        yield one


@pytest.fixture
def upper(node: RunningNode) -> Iterator[Running]:
    with running("serve", "upper", "--node", node.address, "--", "tr", "a-z", "A-Z", errors_too=True) as server:
        assert server.line() == "serving upper"
        yield server


def test_a_command_answers(node: RunningNode, upper: Running):
    assert cubecast("request", "upper", "hello", "--node", node.address).stdout == "HELLO\n"
    assert cubecast("request", "upper", "--node", node.address, text="one\ntwo\n").stdout == "ONE\nTWO\n"
    answer = json.loads(cubecast("request", "upper", "hello", "--json", "--node", node.address).stdout)
    assert answer["data"] == "HELLO" and answer["topic"].startswith("_inbox.")
    assert upper.stop() == 0
    said = complaint("request", "upper", "hello", "--node", node.address, "--within", 600)
    assert said.startswith("upper: nobody is subscribed, so nobody answers")


def test_what_goes_wrong_is_told_to_whoever_asked(node: RunningNode):
    failing = ("sh", "-c", "echo no such thing >&2; exit 3")
    with running("serve", "fail", "--node", node.address, "--", *failing, errors_too=True) as server:
        assert server.line() == "serving fail"
        said = complaint("request", "fail", "?", "--node", node.address, "--within", 600)
        assert said == "CubecastError: sh ended with 3: no such thing"
    endless = ("serve", "endless", "--within", 0.05, "--node", node.address, "--", "tail", "-f", "/dev/null")
    with running(*endless, errors_too=True) as server:
        assert server.line() == "serving endless"
        said = complaint("request", "endless", "?", "--node", node.address, "--within", 600)
        assert said == "CubecastError: tail did not answer in 0.05 s"
    with running("sub", "quiet", "--node", node.address, errors_too=True) as subscriber:
        assert subscriber.line() == "subscribed to quiet"
        said = complaint("request", "quiet", "?", "--node", node.address, "--within", 0.05)
        assert said == "quiet: no answer in 0.05 s; it was asked, and may still be acted on"
    assert "there is no program 'no-such-program'" in complaint("serve", "t", "--", "no-such-program")
    assert "write NAME=VALUE" in complaint("request", "t", "x", "--header", "nothing")
    assert "a number, true or false" in complaint("pub", "t", "x", "--header", "a:=eu")


def heard(node: RunningNode, count: int, *words: object, text: str = "") -> list[dict[str, object]]:
    with running("sub", "t", "--node", node.address, "--count", count, "--json", errors_too=True) as subscriber:
        assert subscriber.line() == "subscribed to t"
        ended = cubecast("pub", "t", *words, "--node", node.address, text=text)
        assert ended.returncode == 0, ended.stderr
        lines = [json.loads(subscriber.line()) for _ in range(count)]
        assert subscriber.process.wait(DEADLINE) == 0
    return [{key: line[key] for key in ("data", "base64", "headers") if key in line} for line in lines]


def test_ways_to_publish(node: RunningNode, tmp_path: Path):
    picture = tmp_path / "picture"
    picture.write_bytes(b"\xff\x00\n\xfe")
    assert heard(node, 1, "--file", picture, "--header", "type=image", "--header", "by=ann=bob") == [
        {"base64": "/wAK/g==", "headers": {"type": "image", "by": "ann=bob"}}
    ]
    assert heard(node, 2, "--jsonl", text='{"a": [1, null]}\n"text"\n') == [
        {"data": {"a": [1, None]}},
        {"data": "text"},
    ]
    assert heard(node, 1, "--jsonl", "7") == [{"data": 7}]
    assert heard(node, 2, "--base64", text="/wA=\naGk=\n") == [{"base64": "/wA="}, {"base64": "aGk="}]


MISTAKES = {
    "no JSON": (("--jsonl",), "1\n{\n", "line 2 of the input is not JSON"),
    "no number": (("--jsonl",), "1\nNaN\n", "line 2 of the input is not JSON: it has no NaN; 1 lines were sent"),
    "no Base64": (("--base64", "ä"), "", "TEXT is not Base64"),
    "no file": (("--file", "no/such"), "", "cannot read no/such: No such file or directory"),
    "two at once": (("text", "--file", "x"), "", "--file is one message of bytes"),
    "two kinds": (("--jsonl", "--base64"), "", "--base64 or --jsonl, not both"),
}


@pytest.mark.parametrize(("words", "text", "said"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes(node: RunningNode, words: tuple[str, ...], text: str, said: str):
    assert said in complaint("pub", "t", *words, "--node", node.address, text=text)


def test_filters_on_the_command_line(node: RunningNode):
    at = ("--node", node.address)
    with running("sub", "f.*", *at, "--where", "price >= 10", "--count", 1, "--json", errors_too=True) as subscriber:
        assert subscriber.line() == "subscribed to f.*"
        cubecast("pub", "f.a", "text is no number", *at, "--header", "price=12")
        cubecast("pub", "f.a", "cheap", *at, "--header", "price:=9")
        cubecast("pub", "f.b", "dear", *at, "--header", "price:=12.5", "--header", "new:=true")
        line = json.loads(subscriber.line())
        assert (line["data"], line["headers"]) == ("dear", {"price": 12.5, "new": True})
        assert subscriber.process.wait(DEADLINE) == 0
    serving = ("serve", "g", *at, "--where", "loud = true", "--", "tr", "a-z", "A-Z")
    with running(*serving, errors_too=True) as server:
        assert server.line() == "serving g"
        assert cubecast("request", "g", "hello", *at, "--header", "loud:=true").stdout == "HELLO\n"
        assert "no answer in 0.05 s" in complaint("request", "g", "hello", *at, "--within", 0.05)
    for command in (("sub", "t"), ("serve", "t", "--", "cat")):
        said = complaint(*command[:2], "--where", "price >= and", *command[2:])
        assert said.startswith("--where: filter, column 10: expected a value")
