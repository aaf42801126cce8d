"""VCube-PS under every order of arrivals Hypothesis can think of: packets overtake each other at will."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cubecast.check import Verdict
from support.script_world import ScriptWorld

SAFE_WITH_JOINS = ("K0", "P1", "P2", "P11")
STATIC = (*SAFE_WITH_JOINS, "K1", "K2", "K3", "P3", "P4", "P4u", "P5", "P6", "P7", "P8", "P12", "P13")


class World(RuleBasedStateMachine):
    """Eight ids, two topics; joins invent and repeat nothing, without them every promise is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.world = ScriptWorld()
        self.joined = False
        self.members: dict[str, list[int]] = {}

    @initialize(a=st.sets(st.integers(0, 7), min_size=1), b=st.sets(st.integers(0, 7), min_size=1))
    def settle(self, a: set[int], b: set[int]) -> None:
        self.members = {"a": sorted(a), "b": sorted(b)}
        self.world.execute("cube 8")
        for topic, nodes in self.members.items():
            self.world.execute(f"members {topic} {' '.join(map(str, nodes))}")
        self.world.execute("view a 0")

    @rule(topic=st.sampled_from("ab"), data=st.data())
    def publish(self, topic: str, data: st.DataObject) -> None:
        node = data.draw(st.sampled_from(self.members[topic]))
        self.world.execute(f"publish {node} {topic}")

    @precondition(lambda self: self.world.flying)
    @rule(data=st.data())
    def deliver_any(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.world.flying) - 1))
        source, destination, _ = self.world.flying[index]
        self.world.execute(f"deliver {source}>{destination}")

    @precondition(lambda self: self.world.flying)
    @rule(count=st.integers(1, 30))
    def deliver_oldest(self, count: int) -> None:
        for _ in range(min(count, len(self.world.flying))):
            self.world.execute("deliver")

    @invariant()
    def an_acknowledgement_is_awaited_only_while_packets_are_under_way(self) -> None:
        awaited = any(state.acks for machine in self.world.machines.values() for state in machine.topics.values())
        assert self.world.flying or not awaited

    def teardown(self) -> None:
        if not self.world.machines:
            return
        self.world.execute("drain")
        promises = SAFE_WITH_JOINS if self.joined else STATIC
        report = self.world.report(promises)
        assert report.verdict is Verdict.VALID, report.witnesses[:2]
        if not self.joined:
            assert self.world.execute("waiting") == []


class JoiningWorld(World):
    @rule(node=st.integers(0, 7), topic=st.sampled_from("ab"))
    def join(self, node: int, topic: str) -> None:
        if node not in self.members[topic]:
            self.members[topic].append(node)
            self.joined = True
            self.world.execute(f"subscribe {node} {topic}")


TestStaticWorlds = World.TestCase
TestStaticWorlds.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, derandomize=True)
TestJoiningWorlds = JoiningWorld.TestCase
TestJoiningWorlds.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, derandomize=True)
