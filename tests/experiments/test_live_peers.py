"""The comparison with other messaging systems: what is missing is named, what is there works and is stopped again."""

import socket
from dataclasses import replace

import pytest
from bench import live_peers
from bench.peers import servers
from bench.peers.known import FLOOR, PEERS, Known
from bench.peers.reference import LATENCIES, aim_here

from cubecast.errors import CubecastError
from cubecast.experiments.live_load.cluster import Measured, measure
from cubecast.experiments.live_load.load import Load

SMALL = Load(members=2, size=64, batch=16)
PRESENT = [peer for peer in PEERS if peer.missing() is None]
SERVERS = {peer.name: peer.server for peer in PRESENT if peer.server is not None}


def measured(load=SMALL, deliveries=100, violations=0, lost=0, latencies=()):
    return Measured(load, 1.0, deliveries, deliveries, lost, violations, list(latencies), [0.5])


def test_what_is_missing_is_said_in_one_line(monkeypatch):
    without_package = Known("Pigeons", "pigeons_for_python", "pigeons", "member")
    without_server = Known("Smoke", "zmq", "zeromq", "mesh", ("smoke-server",))
    monkeypatch.setattr(live_peers, "PEERS", (without_package, without_server, PEERS[0]))
    said = []
    assert live_peers.present(said.append) == [PEERS[0]]
    assert said == [
        "Pigeons: left out, the Python package 'pigeons_for_python' is not installed",
        "Smoke: left out, the server program 'smoke-server' is not installed",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("peer", PRESENT, ids=lambda peer: peer.name)
def test_members_of_a_peer_hear_each_other(peer):
    with peer.running() as body:
        found = measure(SMALL, 0.2, warm_up=0.1, body=body)
    assert found.deliveries > 0
    assert found.lost == 0
    assert found.violations == 0 or peer.server is None, "one server is one order; links between members are many"


@pytest.mark.slow
@pytest.mark.parametrize("peer", [*PRESENT, FLOOR], ids=lambda peer: peer.name)
def test_at_a_rate_every_delivery_is_timed(peer):
    with peer.running() as body:
        found = measure(replace(SMALL, publish="rate", rate=50.0), 0.5, warm_up=0.1, body=body)
    assert 20 <= len(found.latencies) <= found.published * 2
    assert 0 < found.percentile(50) <= found.percentile(99)


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVERS)
def test_a_server_ends_with_its_use(name):
    with SERVERS[name]() as address:
        host, _, port = address.rpartition(":")
        socket.create_connection((host, int(port)), timeout=30).close()
    with pytest.raises(OSError):
        socket.create_connection((host, int(port)), timeout=30)


def test_a_server_that_is_not_there_is_named(tmp_path):
    with (
        pytest.raises(CubecastError, match="'smoke-server' is not installed"),
        servers._running(["smoke-server"], tmp_path),
    ):
        pass


def test_the_best_run_is_shown_and_the_faults_of_all():
    runs = [measured(deliveries=4_000_000, violations=2), measured(deliveries=3_000_000, violations=1, lost=5)]
    said = live_peers.line("pigeons", runs, measured(deliveries=8_000_000))
    assert "4.000 M deliveries/s" in said
    assert "0.50 × the first" in said
    assert "3 out of order, 5 lost" in said


def test_the_calmer_run_is_shown_where_time_counts():
    slow = replace(SMALL, publish="rate", rate=100.0)
    runs = [measured(slow, latencies=[0.001, 0.009]), measured(slow, latencies=[0.002, 0.003])]
    assert "p99 3.000 ms" in live_peers.line("pigeons", runs, None)


def test_sixteen_members_are_compared_with_eight_of_the_same_messages():
    (table,) = [one for one in live_peers.tables([]) if one.part == "sixteen"]
    eight, sixteen = (row.load for row in table.rows)
    assert (eight.members, sixteen.members) == (8, 16)
    assert replace(eight, members=16) == sixteen


def test_only_keeps_what_the_others_are_compared_with():
    table = live_peers.tables(PRESENT)[0]
    assert [row.name for row in live_peers.chosen(table, ["zenoh"]).rows] == ["cubecast", "Zenoh mesh"]


def test_the_aim_for_latencies_follows_the_machine():
    assert LATENCIES.keys() <= {peer.name for peer in PEERS}
    twice = {name: (2 * half, 3 * most) for name, (half, most) in LATENCIES.items()}
    assert aim_here(twice | {"another": (9.0, 9.0)}).endswith("so p50 0.500 p99 1.800 ms here")
    one_odd = twice | {"NATS": (0.01, 99.0)}
    assert aim_here(one_odd) == aim_here(twice), "one system that is slow here says nothing of the machine"
    assert "cannot be carried over" in aim_here({"another": (9.0, 9.0)})
