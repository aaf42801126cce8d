"""A state machine over a small world of cubecast machines: Hypothesis chooses every step, the checker judges the end.

Anything under way may arrive next, be lost or arrive twice; any timer may fire; nodes publish, subscribe, leave, crash,
return, suspect each other wrongly and are parted. Then everything heals, the world must come to rest, and every promise
is checked. A failing run is the list of commands of a scenario script.
"""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from cubecast.check import Verdict
from cubecast.protocol.families import find
from support import planted
from support.script_world import ScriptWorld

NODES = range(4)
PROMISES = find("cubecast").promises
ANY_NODE = st.sampled_from(NODES)
ANY_PLACE = st.integers(0, 10_000)
SOME_PLACES = st.lists(ANY_PLACE, min_size=3, max_size=15)
CLOSING_ROUNDS = 40
MOST_FAULTS = 3


class SmallWorld(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = ScriptWorld()
        self.script: list[str] = []
        self.subscribed: dict[int, bool] = {}
        self.faults = 0
        self.apart = 0
        """Mask of the nodes on the other side of a partition."""

    def do(self, command: str) -> None:
        self.script.append(command)
        self.world.execute(command)

    @initialize(members=st.integers(1, 15), window=st.sampled_from((1, 2, 8)), batch=st.sampled_from((1, 2, 512)))
    def scene(self, members: int, window: int, batch: int) -> None:
        self.subscribed = {node: bool(members >> node & 1) for node in NODES}
        self.do(f"cube 4 cubecast window={window} max_batch={batch}")
        self.do("members t " + " ".join(str(node) for node in NODES if self.subscribed[node]))
        self.world._build()

    def lives(self, node: int) -> bool:
        return node in self.world.machines

    # What applications and machines do

    @rule(words=st.lists(st.tuples(ANY_NODE, st.sampled_from((1, 1, 3)), SOME_PLACES), min_size=2, max_size=5))
    def talk(self, words: list[tuple[int, int, list[int]]]) -> None:
        for node, messages, places in words:
            if self.lives(node):
                self.do(f"publish {node} t {messages}")
            self.deliver(places)

    @rule(node=ANY_NODE, places=SOME_PLACES)
    def subscribe_or_leave(self, node: int, places: list[int]) -> None:
        if self.lives(node):
            self.do(f"{'unsubscribe' if self.subscribed[node] else 'subscribe'} {node} t")
            self.subscribed[node] = not self.subscribed[node]
        self.deliver(places)

    # What happens to packets and timers

    def _link(self, place: int) -> str | None:
        """A packet that can arrive, as scripts name it."""
        flying = self.world.flying
        possible = [
            k for k, (a, b, _) in enumerate(flying) if self.lives(b) and self.apart >> a & 1 == self.apart >> b & 1
        ]
        if not possible:
            return None
        chosen = possible[place % len(possible)]
        source, destination, _ = flying[chosen]
        rank = sum((a, b) == (source, destination) for a, b, _ in flying[: chosen + 1])
        return f"{source}>{destination}#{rank}"

    @rule(places=SOME_PLACES)
    def arrive(self, places: list[int]) -> None:
        self.deliver(places)

    def deliver(self, places: list[int]) -> None:
        for place in places:
            link = self._link(place)
            if link is not None:
                self.do(f"deliver {link}")

    @rule(place=ANY_PLACE, what=st.sampled_from(("copy", "lose")))
    def trouble(self, place: int, what: str) -> None:
        link = self._link(place)
        if link is not None:
            self.do(f"copy {link}" if what == "copy" else f"drop {link}")

    @precondition(lambda self: self.world.pending)
    @rule(place=ANY_PLACE)
    def fire_timer(self, place: int) -> None:
        node, timer = list(self.world.pending)[place % len(self.world.pending)]
        self.do(f"timer {node} {timer}")

    # Faults

    @precondition(lambda self: len(self.world.machines) > 2 and self.faults < MOST_FAULTS)
    @rule(node=ANY_NODE)
    def crash(self, node: int) -> None:
        if self.lives(node):
            self.faults += 1
            self.do(f"crash {node}")
            self.subscribed[node] = False

    @rule(node=ANY_NODE)
    def restart(self, node: int) -> None:
        if not self.lives(node):
            self.do(f"restart {node}")

    @precondition(lambda self: self.faults < MOST_FAULTS)
    @rule(node=ANY_NODE, peer=ANY_NODE)
    def suspect(self, node: int, peer: int) -> None:
        """Rightly or wrongly."""
        if node != peer and self.lives(node):
            self.faults += self.lives(peer)
            self.do(f"suspect {node} {peer}")

    @rule(apart=st.integers(0, 15))
    def part(self, apart: int) -> None:
        self.apart = apart

    # The end

    def teardown(self) -> None:
        if not self.world.machines:
            return
        self.apart = 0
        for _ in range(CLOSING_ROUNDS):
            self._heal()
            if not self._waiting() and not self.world.flying:
                break
        script = "\n".join(self.script)
        assert not self._waiting(), f"{self._waiting()}\n{script}"
        report = self.world.report(PROMISES)
        assert report.verdict is Verdict.VALID, f"{report.violations[:2]} {report.unknown_because}\n{script}"

    def _heal(self) -> None:
        for node in NODES:
            for peer in NODES:
                if node != peer and self.lives(node):
                    self.do(f"{'trust' if self.lives(peer) else 'suspect'} {node} {peer}")
        self.do("drain")
        for node, timer in list(self.world.pending):
            if (node, timer) in self.world.pending:
                self.do(f"timer {node} {timer}")
        self.do("drain")

    def _waiting(self) -> list[str]:
        return [line for machine in self.world.machines.values() for line in machine.waiting()]


def options(examples: int, **more: object) -> settings:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(
        max_examples=examples,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=checks,
        database=None,
        **more,
    )


def test_every_promise_holds_whatever_happens():
    run_state_machine_as_test(SmallWorld, settings=options(200, derandomize=True))


@pytest.mark.slow
def test_every_promise_holds_whatever_happens_for_long():
    run_state_machine_as_test(SmallWorld, settings=options(3000))


@pytest.mark.parametrize(
    "plant",
    [planted.excuse_omitted, planted.ack_before_forward, planted.forget_before_stable],
    ids=lambda one: one.__name__,
)
def test_planted_bugs_are_found(plant):
    with plant(), pytest.raises(AssertionError):
        run_state_machine_as_test(SmallWorld, settings=options(300, derandomize=True, phases=[Phase.generate]))
