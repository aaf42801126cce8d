"""What a node keeps for clients is bounded for one, for an address, for a principal and for all of them together."""

import pytest

from cubecast.errors import BadInput
from cubecast.net.gateway.client_subscriptions import MOST_KNOWN
from cubecast.net.gateway.messages import Ended, Ready, Resumed, Subscribe, decode_from_node
from cubecast.net.gateway.messages import encode as said
from cubecast.net.links.handshake import MAGIC, VERSION, Accepted, ClientGreeting, decode_answer, encode
from cubecast.net.port.port import FromCut
from cubecast.net.security.limits import CUT_ENTRY, SUBSCRIPTION, Holdings, Share
from cubecast.net.settings.security import Limits
from support.cluster import cluster
from support.running import run, until
from support.secured import Raw

LIMITS = Limits(memory_per_client=4096, memory_per_source=6144, memory=10_240)


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ([("here", None, 0)], "for a client"),
        ([("here", None, 4096)], "for one address"),
        ([("elsewhere", "ann", 4096)], "for one principal"),
        ([("elsewhere", "bob", 4096), ("third", None, 4096)], "as much for its clients as it may"),
    ],
)
def test_each_limit_counts_whoever_holds_it(others, reason):
    holdings = Holdings(lambda: LIMITS)
    for address, principal, size in others:
        Share(holdings, address, principal).take(size)
    before = holdings.total
    share = Share(holdings, "here", "ann")
    with pytest.raises(BadInput, match=reason):
        share.take(5000 if reason == "for a client" else 3000)
    assert holdings.total == before and share.held == 0, "what was refused is not counted"
    share.take(2048)
    share.give_back(2048)
    assert holdings.total == before


async def _in(node):
    caller = await Raw.open(node._live.address)
    caller.send(encode(ClientGreeting(MAGIC, VERSION, VERSION, "cubecast", "greedy")))
    assert isinstance(decode_answer(await caller.frame()), Accepted)
    return caller


async def _hear(caller, *kinds):
    while True:
        message = decode_from_node(await caller.frame())
        if isinstance(message, kinds):
            return message


def test_many_connections_get_no_more_than_their_address(tmp_path):
    """And what they held is free for others when they are gone."""
    limits = Limits(memory_per_source=3 * (SUBSCRIPTION + 100 * CUT_ENTRY), requests_per_second=1e9)
    cut = FromCut([("t", source, 0, 1) for source in range(100)])

    async def main():
        async with cluster(1, data=tmp_path, log=(">",), limits=limits) as (node,):
            holdings = node._live.clients._holdings
            callers = [await _in(node) for _ in range(5)]
            answers = []
            for caller in callers:
                caller.send(said(Subscribe(1, "t", cut)))
                answers.append(type(await _hear(caller, Ready, Ended)))
            assert answers == [Ready] * 3 + [Ended] * 2
            for caller in callers:
                caller.close()
            await until(lambda: holdings.total == 0)
            assert not holdings.of

    run(main())


def test_a_cut_of_a_mebibyte_is_not_kept(tmp_path):
    """It took 28 MiB for each connection that sent one."""
    cut = FromCut([("t", source % 64, source, 1) for source in range(MOST_KNOWN + 1)], resumes=True)

    async def main():
        async with cluster(1, data=tmp_path, log=(">",)) as (node,):
            caller = await _in(node)
            caller.send(said(Subscribe(1, "t", cut)))
            answer = await _hear(caller, Resumed, Ended)
            assert answer == Resumed(1, is_complete=False), "live with a gap rather than not at all"
            caller.close()

    run(main())


def test_when_too_much_waits_in_all_the_one_with_most_of_it_goes():
    class Link:
        label = "somebody"

        def __init__(self, queued):
            self.queued, self.reason = queued, None

        def abort(self, reason):
            self.reason = reason

    async def main():
        async with cluster(1) as (node,):
            clients = node._live.clients
            clients.limits = LIMITS
            links = [Link(queued) for queued in (2000, 7000, 3000)]
            clients._gateways = dict.fromkeys(links)
            clients._relieve()
            clients._gateways = {}
            assert [one.reason is not None for one in links] == [False, True, False]
            assert "7000 bytes" in links[1].reason

    run(main())
