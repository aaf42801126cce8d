import json
import re

from cubecast.trace.event import Event
from cubecast.trace.shiviz import PARSER, clocked, shiviz_log
from support.histories import parse_rows
from support.model_traces import clean_trace

QUESTION_AND_ANSWER = """
node 0
publish a 0:1
quiescent
node 1
deliver a 0:1
publish a 1:1
"""


def test_one_conversation_in_full():
    assert shiviz_log(parse_rows(QUESTION_AND_ANSWER)) == (
        'node0.0 {"node0.0": 1}\npublish a 0.0:1\n'
        'node0.0 {"node0.0": 2}\nquiescent\n'
        'node1.0 {"node0.0": 1, "node1.0": 1}\ndeliver a 0.0:1\n'
        'node1.0 {"node0.0": 1, "node1.0": 2}\npublish a 1.0:1\n'
    )


def test_packets_carry_clocks_too():
    sent = Event(0, 0, 0, 0.0, "send", peer=1, packet=9)
    received = Event(1, 0, 0, 0.0, "receive", peer=0, packet=9, detail="two\nlines")
    assert shiviz_log([received, sent]) == (
        'node0.0 {"node0.0": 1}\nsend to 1\nnode1.0 {"node0.0": 1, "node1.0": 1}\nreceive from 0 two lines\n'
    )


def test_the_declared_parser_reads_it_back():
    events = clean_trace(4).events
    text = shiviz_log(events)
    found = re.findall(PARSER.replace("?<", "?P<"), text)
    assert len(found) == len(events)
    assert all(json.loads(clock)[host] >= 1 for host, clock, _ in found)


def test_clocks_grow_along_every_log_and_every_message():
    events = clean_trace(8).events
    clock_of = {(event.node, event.incarnation, event.seq): clock for event, clock in clocked(events)}
    assert len(clock_of) == len(events), "a clean trace has no circles"
    published = {event[5:9]: event for event in events if event.kind == "publish"}
    for event in events:
        clock = clock_of[event[:3]]
        if event.seq:
            assert below(clock_of[event.node, event.incarnation, event.seq - 1], clock)
        if event.kind == "deliver":
            assert below(clock_of[published[event[5:9]][:3]], clock)


def below(a: dict[str, int], b: dict[str, int]) -> bool:
    return a != b and all(value <= b.get(host, 0) for host, value in a.items())


def test_rows_that_wait_for_each_other_are_left_out():
    circle = "node 0\ndeliver a 1:1\npublish a 0:1\nnode 1\ndeliver a 0:1\npublish a 1:1"
    assert shiviz_log(parse_rows(circle)) == ""
