"""What the policy does not grant is refused, with a line that says what, and everything else goes on."""

import pytest

from cubecast.api.connect import connect
from cubecast.errors import BadInput, CubecastError, NotPermitted
from cubecast.net.links.login import Login, node_login
from cubecast.net.security.credentials import digest, new_token
from cubecast.net.security.policy import ANYBODY, REMEMBERED, Action, Principal, parse_policy
from support.certificates import certificates
from support.running import run, until
from support.secured import refused, secured

TOKEN = new_token("alice")
RULES = f"""[principals.alice]
tokens = ["{digest(TOKEN, "cubecast")}"]
publish = ["orders.*", "logs.eu.>", "exact", "_inbox.*"]
subscribe = ["orders.*", "logs.eu.>", "exact", "_inbox.*"]
"""
LOGIN = Login(token=TOKEN)

NOT_PUBLISHED = ["orders", "orders.eu.new", "logs", "logs.eu", "logs.us.x", "exactly", "exact.x", "_inbox.a.b", "_x.a"]
NOT_SUBSCRIBED = [
    *("orders", "orders.eu.new", "logs.us.x", "exact.x"),
    *("*", ">", "orders.>", "*.new", "logs.>", "logs.*.x", "logs.eu", "*.eu.>", "_inbox.*", "_inbox.>", "*.*"),
]


@pytest.mark.parametrize("topic", NOT_PUBLISHED)
def test_nothing_is_published_where_it_is_not_granted(topic):
    async def scenario():
        async with secured(RULES, tls=False) as scene, connect(scene.address, login=LOGIN) as client:
            with pytest.raises(BadInput, match=f"alice may not publish on {topic}"):
                await client.publish(topic, "forbidden", wait="stable")

    run(scenario())


@pytest.mark.parametrize("pattern", NOT_SUBSCRIBED)
def test_a_subscription_is_granted_as_a_whole_or_not_at_all(pattern):
    async def scenario():
        async with secured(RULES, tls=False) as scene, connect(scene.address, login=LOGIN) as client:
            subscription = client.subscribe(pattern)
            with pytest.raises(CubecastError, match="alice may not subscribe to"):
                await subscription.ready()

    run(scenario())


def test_looking_at_the_node_is_for_its_admins():
    async def scenario():
        async with secured(RULES, tls=False) as scene, connect(scene.address, login=LOGIN) as client:
            with pytest.raises(CubecastError, match="alice may not look after this node"):
                await client.status()
            assert (await scene.honest.status())["clients"] == 2

    run(scenario())


@pytest.mark.parametrize("what", ["publish", "subscribe", "admin"])
def test_whoever_shows_nothing_may_do_what_is_granted_to_nobody_in_particular(what):
    async def scenario():
        rules = '[anonymous]\nsubscribe = ["public.>"]\n'
        async with secured(rules, tls=False) as scene, connect(scene.address) as client:
            async with client.subscribe("public.news") as granted:
                await granted.ready()
            with pytest.raises(CubecastError, match="anonymous may not"):
                match what:
                    case "publish":
                        await client.publish("public.news", 1, wait="stable")
                    case "subscribe":
                        await client.subscribe(">").ready()
                    case _:
                        await client.status()

    run(scenario())


def test_what_is_granted_works_over_tls_with_a_certificate():
    async def scenario():
        rules = '[principals.erin]\ncertificate = true\npublish = ["e"]\nsubscribe = ["e"]\n'
        async with secured(rules) as scene:
            login = Login(tls=certificates().client("erin"))
            async with connect(scene.address, login=login) as client, client.subscribe("e") as subscription:
                await subscription.ready()
                await client.publish("e", "granted", wait="stable")
                message = await anext(aiter(subscription))
                assert (message.data, message.principal) == ("granted", "erin")
            assert (await anext(aiter(scene.sees))).principal == "erin"

    run(scenario())


def test_a_node_may_ask_another_one_what_it_likes():
    """Its certificate is proof enough, whatever the policy says, and under whatever name the other is dialled."""

    async def scenario():
        async with secured(tls=certificates().make("bare", (None,), hosts=("127.0.0.1",))) as scene:
            where = f"localhost:{scene.at.port}"
            async with connect(where, login=node_login(certificates().node)) as client:
                assert (await client.status())["clients"] == 2
            assert "Hostname mismatch" in await refused(where, Login(tls=certificates().anybody))

    run(scenario())


def test_questions_are_answered_where_inboxes_are_granted():
    async def scenario():
        async with secured(RULES, tls=False) as scene, connect(scene.address, login=LOGIN) as client:
            async with client.serve("exact", lambda message: f"hello {message.principal}"):
                answer = await client.request("exact", "who am I?")
                assert (answer.data, answer.principal) == ("hello alice", "alice")
            assert (await anext(aiter(scene.sees))).data == "who am I?"

    run(scenario())


def test_a_new_policy_ends_what_it_does_not_grant():
    async def scenario():
        async with secured(RULES, tls=False) as scene, connect(scene.address, login=LOGIN) as client:
            kept, lost = client.subscribe("exact"), client.subscribe("orders.*")
            await kept.ready()
            await lost.ready()
            await client.publish("orders.new", 1, wait="stable")
            assert (await anext(aiter(scene.sees))).data == (await anext(aiter(lost))).data == 1
            digests = digest(TOKEN, "cubecast")
            scene.write_policy(f'[principals.alice]\ntokens = ["{digests}"]\nsubscribe = ["exact"]\n')
            assert scene.node.security.reload()
            with pytest.raises(CubecastError, match=r"may not subscribe to orders\.\*"):
                await anext(aiter(lost))
            with pytest.raises(BadInput, match=r"may not publish on orders\.new"):
                await client.publish("orders.new", 2, wait="stable")
            assert not kept.closed

    run(scenario())


def test_principals_decide_for_whoever_asks():
    policy = parse_policy({"principals": {"a": {"publish": ["x.*"], "admin": [">"]}}}, "cubecast")
    principal = policy.known["a"].principal
    assert principal.may("publish", "x.y") and principal.may(Action.PUBLISH, "x.*")
    assert not any(principal.may("subscribe", one) for one in ("x.y", "", "x..y", "x y", ">"))
    principal.check(Action.ADMIN)
    with pytest.raises(NotPermitted, match="a may not publish on x"):
        principal.check("publish", "x")
    assert ANYBODY.may("admin", "whatever")


def test_decisions_are_remembered_but_not_for_ever():
    principal = Principal("a", {Action.PUBLISH: ["x.*"]})
    for number in range(3 * REMEMBERED):
        assert principal.may("publish", f"x.{number}")
    assert len(principal._decisions) <= REMEMBERED


def test_an_end_by_policy_leaves_nothing_behind():
    async def scenario():
        async with secured(RULES, tls=False) as scene, connect(scene.address, login=LOGIN) as client:
            subscription = client.subscribe("orders.*")
            await subscription.ready()
            scene.write_policy("")
            assert scene.node.security.reload()
            await until(lambda: scene.node.status()["clients"] == 1)
            assert scene.node.status()["subscriptions"] == 1, "the honest one's"

    run(scenario())
