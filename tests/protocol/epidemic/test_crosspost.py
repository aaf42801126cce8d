"""CrosspostFlood's machine and SimpleFlood's, step by step, in worlds, and beside the kernel that counts for them."""

from random import Random

import numpy as np
import pytest

from cubecast.check.checker import check_trace
from cubecast.errors import BadInput, LocalProtocolError, RemoteProtocolError
from cubecast.experiments.stan.universes import matched
from cubecast.experiments.swarm import swarm
from cubecast.ids import MessageId
from cubecast.pipeline.workloads.synthetic import Shape
from cubecast.protocol.effects import Deliver, Published, Send
from cubecast.protocol.epidemic import stan_overlay
from cubecast.protocol.epidemic.crosspost import Crossposted, CrosspostFlood, SimpleFlood
from cubecast.protocol.epidemic.stan import StanParameters
from cubecast.protocol.epidemic.stan_packets import Flooded, Gone
from cubecast.sim.config import SimConfig
from cubecast.sim.kernels.stan import Overlays
from cubecast.sim.kernels.stan_kernel import flood, make_flood
from cubecast.sim.run import simulate, simulate_to_memory
from cubecast.trace.reader import Trace

VIEWS = {"t": (1, 2, 3), "u": (2, 3, 4), "v": (5,)}


def machine(kind=CrosspostFlood, node=0, views=VIEWS):
    return kind(node, range(20), StanParameters(), Random(1), views=views)


def message(topics=("t", "u"), counters=(1, 1), source=1):
    return Crossposted(source, 0, tuple(zip(topics, counters, strict=True)), (b"x",))


def test_a_message_of_several_topics_is_sent_once_to_each_neighbour():
    mine = Crossposted(0, 0, (("t", 1), ("u", 1)), (b"x",))
    assert machine().crosspost(0.0, ("t", "u"), [b"x"]) == [
        Published("t", 1, 1, ()),
        Published("u", 1, 1, ()),
        Send((1, 2, 3, 4), mine),
        Deliver("t", MessageId(0, 0, 1), (b"x",)),
        Deliver("u", MessageId(0, 0, 1), (b"x",)),
    ]


def test_the_baseline_floods_each_topic():
    sent = [one for one in machine(SimpleFlood).crosspost(0.0, ("t", "u"), [b"x"]) if isinstance(one, Send)]
    assert [(one.peers, one.packet.topic) for one in sent] == [((1, 2, 3), "t"), ((2, 3, 4), "u")]
    assert all(type(one.packet) is Flooded for one in sent)


def test_it_is_delivered_in_each_topic_of_the_receiver_and_not_sent_back_nor_twice():
    one, packet = machine(), message(("t", "u", "w"), (4, 1, 9))
    assert one.on_packet(0.0, 2, packet) == [
        Send((1, 3, 4), packet),
        Deliver("t", MessageId(1, 0, 4), (b"x",)),
        Deliver("u", MessageId(1, 0, 1), (b"x",)),
    ]
    assert one.on_packet(0.0, 3, packet) == []
    flooded = Flooded("t", MessageId(1, 0, 4), (b"x",))
    assert one.on_packet(0.0, 3, flooded) == []


def test_numbers_of_a_topic_go_on_whether_a_message_has_one_topic_or_several():
    one = machine()
    one.crosspost(0.0, ("t", "u"), [b"x", b"y"])
    one.publish(0.0, "t", [b"z"])
    published = [effect for effect in one.crosspost(0.0, ("t", "u"), [b"x"]) if isinstance(effect, Published)]
    assert [(effect.topic, effect.counter) for effect in published] == [("t", 4), ("u", 3)]


def test_who_is_a_member_of_none_of_the_topics_says_so():
    one = machine()
    assert one.on_packet(0.0, 7, message(("x", "y"))) == [Send((7,), Gone("x")), Send((7,), Gone("y"))]


@pytest.mark.parametrize("topics", [(), ("t", "t"), ("t", "x"), tuple(f"t{k}" for k in range(65))])
@pytest.mark.parametrize("kind", [CrosspostFlood, SimpleFlood])
def test_topics_a_message_cannot_have_are_refused_and_nothing_is_sent(kind, topics):
    one = machine(kind)
    with pytest.raises(LocalProtocolError, match="nothing was sent"):
        one.crosspost(0.0, topics, [b"x"])
    assert one.crosspost(0.0, ("t",), [b"x"])[0] == Published("t", 1, 1, ())


@pytest.mark.parametrize(
    "packet",
    [
        Crossposted(-1, 0, (("t", 1), ("u", 1)), (b"x",)),
        Crossposted(1, 0, (("t", 1),), (b"x",)),
        Crossposted(1, 0, (("t", 1), ("t", 2)), (b"x",)),
        Crossposted(1, 0, (("t", 1), ("u", 0)), (b"x",)),
        Crossposted(1, 0, (("t", 1), ("u", 1)), ()),
    ],
)
def test_what_no_member_sends_is_refused(packet):
    with pytest.raises(RemoteProtocolError):
        machine().on_packet(0.0, 1, packet)
    with pytest.raises(RemoteProtocolError):
        machine(SimpleFlood).on_packet(0.0, 1, message())


def test_one_publisher_too_many_in_one_topic_leaves_the_others_as_they_were(monkeypatch):
    monkeypatch.setattr(stan_overlay, "MOST_PUBLISHERS", 1)
    one = machine()
    one.on_packet(0.0, 1, Flooded("u", MessageId(9, 0, 1), (b"x",)))
    with pytest.raises(RemoteProtocolError, match="publishers"):
        one.on_packet(0.0, 1, message(("t", "u")))
    one.on_packet(0.0, 1, Flooded("t", MessageId(8, 0, 1), (b"x",)))


def world(protocol, **options):
    settings = {"period": "500"}
    return SimConfig(protocol, nodes=30, topics=4, subscribers="70%", publishers="25%", messages=2, window=4000.0,
                     tags=3, until=8000.0, seed=3, settings=settings, **options)  # fmt: skip


def test_fewer_packets_bring_everybody_the_same():
    floods = {}
    for protocol in ("crosspost", "simple-flood"):
        info, events, figures = simulate_to_memory(world(protocol), careful=False)
        assert not check_trace(Trace(info, events)).violations
        assert figures["deliveries"] == 21 * figures["published"] > 0 and not figures["refused"]
        floods[protocol] = sum(event.kind == "send" and bool(event.messages) for event in events)
    assert floods["crosspost"] < 0.8 * floods["simple-flood"]


def test_other_protocols_refuse_messages_of_several_topics():
    with pytest.raises(BadInput, match="on several do crosspost, simple-flood"):
        simulate(SimConfig("stan", nodes=8, topics=3, tags=2, until=5000.0))
    with pytest.raises(BadInput, match="uniform and poisson"):
        simulate(world("crosspost", workload="periodic:10"))


def test_the_swarm_draws_them():
    *_, tally = swarm("crosspost", 1, 30)
    assert tally.failure is None, tally.failure.replay


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_kernel_counts_what_machines_send(seed):
    """Every process sends as many copies, and the last delivery is as many hops away."""
    print(f"seed {seed}")
    drawn = matched(seed, Shape(80, 4, 60, 1.6, 1000.0, 2, 0.7))
    overlays = Overlays(drawn.first, drawn.members, seed=seed)
    for _ in range(5):
        overlays.round()
    overlays.mend()
    three = np.array([0, 1, 2])
    common = sorted(set(drawn.of(0).tolist()) & set(drawn.of(1).tolist()) & set(drawn.of(2).tolist()))
    state = make_flood(drawn.processes, 3)
    flood(overlays.world, three, common[0], state)
    sent, hops = flooded_by_machines(drawn, overlays, common[0])
    assert state.sent.tolist() == sent and [len(hops), sum(hops)] == state.sums.tolist()


def flooded_by_machines(drawn, overlays, source):
    """Copies by sender, and the hops of each delivery, round of packets by round of packets."""
    views = [{} for _ in range(drawn.processes)]
    keepers = overlays.world.pinned_at.tolist()
    for topic in range(drawn.topics):
        for slot in range(drawn.first[topic], drawn.first[topic + 1]):
            views[int(drawn.members[slot])][str(topic)] = overlays.view(slot)
    peers = range(drawn.processes)
    machines = [CrosspostFlood(one, peers, StanParameters(), Random(1), views=views[one]) for one in peers]
    for topic in range(drawn.topics):
        for slot in range(drawn.first[topic], drawn.first[topic + 1]):
            if keepers[slot] < len(drawn.members):
                keeper = int(drawn.members[keepers[slot]])
                machines[keeper].overlays[str(topic)].pins.add(int(drawn.members[slot]))
    sent, hops, hop = [0] * drawn.processes, [], 0
    effects = [(source, one) for one in machines[source].crosspost(0.0, ("0", "1", "2"), [b"x"])]
    while effects:
        hops += [hop for _, effect in effects if isinstance(effect, Deliver)]
        coming = [(n, peer, one.packet) for n, one in effects if isinstance(one, Send) for peer in one.peers]
        for sender, _, _ in coming:
            sent[sender] += 1
        effects = [(peer, e) for sender, peer, packet in coming for e in machines[peer].on_packet(0.0, sender, packet)]
        hop += 1
    return sent, hops
