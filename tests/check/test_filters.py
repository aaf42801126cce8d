"""Three readings of filters, written apart: the protocols', the reference checker's and the pipeline's."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cubecast.check import check_trace
from cubecast.check.filters import UnreadableFilterError, attributes_of, predicate
from cubecast.pipeline.filters import is_filter, matching
from cubecast.protocol.filters import parse
from cubecast.sim.config import SimConfig
from cubecast.sim.recorder import Recorder
from cubecast.sim.run import prepare, run_info
from cubecast.trace.event import Event
from cubecast.trace.reader import Trace
from support.agreeing import differences_between
from support.model_traces import ALL_PROMISES
from support.without_spark import judge

NAMES = st.sampled_from(["a", "b", "topic", "long.name-x"])
VALUES = st.one_of(
    st.integers(-3, 3), st.sampled_from([0.5, 1.0, -2.5, 1e3, True, False, "", "x", "xy", "o'er", 'say "so"', "true"])
)


def text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


NUMBERS = VALUES.filter(lambda value: not isinstance(value, bool | str))


def compared(name: str, sign: str, value: object) -> str:
    return f"{name} {sign} {text(value)}"


TERMS = st.one_of(
    st.builds(compared, NAMES, st.sampled_from(["=", "!="]), VALUES),
    st.builds(compared, NAMES, st.sampled_from(["<", "<=", ">", ">="]), NUMBERS),
    st.builds(
        lambda name, word, values: f"{name} {word} ({', '.join(map(text, values))})",
        NAMES,
        st.sampled_from(["in", "not in", "NOT IN"]),
        st.lists(VALUES, min_size=1, max_size=3),
    ),
    st.builds(lambda name, prefix: f"{name} ^= {text(prefix)}", NAMES, st.sampled_from(["", "x", "o'"])),
    st.builds(lambda name, word: f"{word}({name})", NAMES, st.sampled_from(["exists", "not exists"])),
)
FILTERS = st.recursive(
    TERMS,
    lambda inner: st.builds(
        lambda one, word, other, closed: f"({one}) {word} {other}" if closed else f"{one} {word} {other}",
        inner,
        st.sampled_from(["and", "or"]),
        inner,
        st.booleans(),
    ),
    max_leaves=4,
)
ATTRIBUTES = st.dictionaries(st.sampled_from(["a", "b", "long.name-x"]), VALUES | st.just(float("nan")), max_size=3)


@settings(max_examples=600, deadline=None)
@given(FILTERS, ATTRIBUTES)
def test_all_three_read_alike(wanted: str, attributes: dict[str, object]):
    told = json.dumps(attributes)
    expected = parse(wanted).matches({"topic": "x", **attributes})
    assert predicate(wanted)(attributes_of(told, "x")) is expected
    assert matching(wanted, [told], "x").tolist() == [expected]


@pytest.mark.parametrize(
    "wrong",
    [
        *("", "a", "a >", "a = ", "a = 1 or", "(a = 1", "a = 1)", "a in 1", "a in (1", "exists a", "not a", "= 1"),
        *("a = b", "a ~ 1"),
    ],
)
def test_what_is_no_filter_is_none_for_both_judges(wrong: str):
    assert not is_filter(wrong)
    with pytest.raises(UnreadableFilterError):
        predicate(wrong)


@pytest.mark.parametrize("protocol", ["locaps", "delta", "gryphon"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_brokers_deliver_what_filters_match_and_both_judges_see_it(protocol: str, seed: int):
    """The same run with a subscriber's filter taken away, or with one message less, is wrong."""
    config = SimConfig(protocol, nodes=8, publishers="25%", subscribers="50%", seed=seed)
    rows: list[Event] = []
    simulation = prepare(config, Recorder(rows))
    world = simulation.world
    outsiders = [node for node in world.nodes if "t" not in world.subscriptions[node]]
    for place, node in enumerate(outsiders):
        world.at(1.0, world.subscribe, node, "t", ("price >= 5", "price < 5 or exists(urgent)")[place % 2])
    for number in range(30):
        attributes = {"price": number % 10, **({"urgent": True} if number % 7 == 0 else {})}
        world.at(3000.0 + 40 * number, world.publish, world.nodes[number % 3], "t", (b"%d" % number,), attributes)
    simulation.run()
    trace = Trace(run_info(config), rows)
    assert check_trace(trace).violated() == set()
    assert differences(trace) == []
    filtered = {row.node for row in rows if row.filter is not None}
    assert filtered == set(outsiders)
    lost = next(row for row in reversed(rows) if row.kind == "deliver" and row.node in filtered)
    mutants = [
        [row._replace(filter=None) for row in rows],
        [row for row in rows if row.seq != lost.seq or row.node != lost.node or row is not lost],
        [row._replace(filter="price > 99") if row.filter is not None else row for row in rows],
    ]
    for number, mutant in enumerate(mutants):
        renumbered = renumber(mutant)
        assert check_trace(Trace(trace.info, renumbered), (*trace.info.promises, "P4", "P11")).violated(), number
        assert differences(Trace(trace.info, renumbered)) == []


def differences(trace: Trace) -> list[str]:
    return differences_between(check_trace(trace, ALL_PROMISES), judge(trace, ALL_PROMISES))


def renumber(rows: list[Event]) -> list[Event]:
    places: dict[tuple[int, int], int] = {}
    kept = []
    for row in rows:
        place = places.get(row[:2], 0)
        places[row[:2]] = place + 1
        kept.append(row._replace(seq=place))
    return kept
