"""Tokens and keys that prove nothing are refused with words that do not tell what was wrong with them."""

import base64
import logging
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cubecast.api.connect import connect
from cubecast.errors import BadInput, NotAuthenticated
from cubecast.net.links.handshake import (
    MAGIC,
    VERSION,
    Accepted,
    Challenge,
    ClientGreeting,
    Proof,
    Refused,
    decode_answer,
    encode,
)
from cubecast.net.links.login import Login, from_environment
from cubecast.net.links.tls import client_context
from cubecast.net.security.credentials import KeyProof, Token, digest, holder, new_token
from cubecast.net.security.keys import new_key, statement, written
from cubecast.net.security.policy import load_policy, parse_policy
from support.certificates import certificates
from support.running import run, until
from support.secured import Raw, refused, secured

ALICE = new_token("alice")
BAD = "this token is not valid here"
RULES = f'[principals.alice]\ntokens = ["{digest(ALICE, "cubecast")}"]\npublish = ["a.>"]\n[principals.bob]\n'

TOKENS = {
    "missing": (None, "asks for a token"),
    "empty": ("", BAD),
    "a name only": ("alice", BAD),
    "wrong": (new_token("alice"), BAD),
    "of somebody unknown": (new_token("mallory"), BAD),
    "under another name": ("bob." + ALICE.rpartition(".")[2], BAD),
    "one character short": (ALICE[:-1], BAD),
    "one character longer": (ALICE + "A", BAD),
    "one character different": (ALICE[:-1] + ("A" if ALICE[-1] != "A" else "B"), BAD),
    "in capitals": (ALICE.upper(), BAD),
    "its digest": (digest(ALICE, "cubecast"), BAD),
    "its digest as a secret": ("alice." + digest(ALICE, "cubecast")[:43], BAD),
    "with a space": (ALICE + " ", BAD),
    "very long": ("alice." + "A" * 10_000, BAD),
    "other than text": ("alice.\x00\udc00"[:-1] + "é" * 42, BAD),
}


@pytest.mark.parametrize("case", TOKENS)
def test_a_token_is_refused(case):
    async def scenario():
        async with secured(RULES) as scene:
            token, reason = TOKENS[case]
            assert reason in await refused(scene.address, Login(tls=certificates().anybody, token=token))

    run(scenario())


def test_a_token_of_another_cluster_is_refused_even_where_the_policy_is_the_same():
    async def scenario():
        made = certificates()
        other = {"cluster": "other", "tls": made.make("other", (None,), cluster="other")}
        async with secured(RULES, **other) as scene:
            login = Login(tls=made.anybody, token=ALICE)
            assert BAD in await refused(scene.address, login, cluster="other")

    run(scenario())


def test_a_revoked_token_is_refused_and_whoever_used_it_has_to_go():
    async def scenario():
        async with secured(RULES) as scene:
            login = Login(tls=certificates().anybody, token=ALICE)
            client = await connect(scene.address, login=login, patience=0.0)
            await until(lambda: len(scene.node.clients) == 2)
            scene.write_policy("[principals.alice]\n")
            assert scene.node.security.reload()
            await until(lambda: len(scene.node.clients) == 1)
            assert BAD in await refused(scene.address, login)
            await client.close()

    run(scenario())


def test_a_token_is_not_sent_in_the_clear():
    async def scenario():
        reason = await refused("192.0.2.1:7400", Login(token=ALICE))
        assert "a token does not cross a network in the clear" in reason

    run(scenario())


# Keys


def _greets(name):
    return ClientGreeting(MAGIC, VERSION, VERSION, "cubecast", "tests", None, name)


KEY = Ed25519PrivateKey.generate()
OTHER = Ed25519PrivateKey.generate()
KEYS = f'[principals.carol]\nkeys = ["{written(KEY)}"]\npublish = ["c.>"]\n'
BAD_KEY = "this key is not valid here"


def _proof(key=KEY, cluster="cubecast", name="carol", challenge=None, channel=None):
    def prove(asked, shown):
        return key.sign(statement(cluster, name, challenge or asked, shown if channel is None else channel))

    return prove


PROOFS = {
    "another key": ("carol", _proof(OTHER)),
    "a key of nobody known": ("mallory", _proof(OTHER, name="mallory")),
    "somebody else's name": ("honest", _proof(name="honest")),
    "a challenge of its own making": ("carol", _proof(challenge=bytes(32))),
    "signed for another cluster": ("carol", _proof(cluster="other")),
    "signed for another name": ("carol", _proof(name="honest")),
    "signed for another node": ("carol", _proof(channel=bytes(32))),
    "signed for no node": ("carol", _proof(channel=b"")),
    "signed without a statement": ("carol", lambda asked, shown: KEY.sign(asked)),
    "no signature": ("carol", lambda asked, shown: b""),
    "a long signature": ("carol", lambda asked, shown: bytes(4096)),
    "zeros": ("carol", lambda asked, shown: bytes(64)),
}


async def _challenged(scene, name):
    caller = await Raw.open(scene.at, client_context(certificates().anybody))
    caller.send(encode(_greets(name)))
    answer = decode_answer(await caller.frame())
    assert isinstance(answer, Challenge)
    return caller, answer.challenge


@pytest.mark.parametrize("case", PROOFS)
def test_a_proof_is_refused(case):
    async def scenario():
        async with secured(KEYS) as scene:
            name, prove = PROOFS[case]
            caller, challenge = await _challenged(scene, name)
            caller.send(encode(Proof(prove(challenge, scene.node.security.tls.channel))))
            answer = decode_answer(await caller.frame())
            assert isinstance(answer, Refused) and answer.reason == BAD_KEY
            await caller.closed()

    run(scenario())


def test_a_proof_that_was_overheard_is_good_for_nothing():
    async def scenario():
        async with secured(KEYS) as scene:
            caller, challenge = await _challenged(scene, "carol")
            good = encode(Proof(_proof()(challenge, scene.node.security.tls.channel)))
            caller.send(good)
            assert isinstance(decode_answer(await caller.frame()), Accepted)
            caller.close()
            thief, another = await _challenged(scene, "carol")
            assert another != challenge
            thief.send(good)
            answer = decode_answer(await thief.frame())
            assert isinstance(answer, Refused) and answer.reason == BAD_KEY
            await thief.closed()

    run(scenario())


@pytest.mark.parametrize(
    "said", [encode(_greets("carol")), encode(Proof(b"")), b"nonsense"], ids=["again", "early", "x"]
)
def test_what_is_no_answer_to_a_challenge_ends_the_conversation(said):
    async def scenario():
        async with secured(KEYS) as scene:
            if said == encode(Proof(b"")):
                caller = await Raw.open(scene.at, client_context(certificates().anybody))
            else:
                caller, _ = await _challenged(scene, "carol")
            caller.send(said)
            assert await caller.frame() is None

    run(scenario())


def test_a_key_opens_the_door(tmp_path):
    """The counterpart: none of the above is refused because keys never work."""

    async def scenario():
        private, public = new_key()
        (tmp_path / "dora.key").write_bytes(private)
        async with secured(f'[principals.dora]\nkeys = ["{public}"]\npublish = ["d"]\n') as scene:
            login = Login(tls=certificates().anybody, key_file=tmp_path / "dora.key", name="dora")
            async with connect(scene.address, login=login) as client:
                await client.publish("d", 1, wait="stable")
            message = await anext(aiter(scene.sees))
            assert (message.data, message.principal) == (1, "dora")

    run(scenario())


# Policies and logins that are wrong

POLICIES = {
    "no TOML": ("[", "is not valid TOML"),
    "an unknown table": ("[people]\n", "unknown settings people"),
    "an unknown setting": ('[principals.a]\npublishes = ["a"]\n', "a: unknown settings publishes"),
    "a token in the clear": (f'[principals.a]\ntokens = ["{ALICE}"]\n', "a token's digest is"),
    "a key that is none": ('[principals.a]\nkeys = ["ed25519:AAAA"]\n', "a public key is"),
    "a text for a list": ('[principals.a]\npublish = ">"\n', "publish is a list of texts"),
    "a pattern that is none": ('[principals.a]\npublish = ["a..b"]\n', "empty word"),
    "a name that is none": ('[principals."a b"]\n', "is no name for a principal"),
    "the name of nobody": ("[principals.anonymous]\n", "cannot be a principal's name"),
    "proofs for nobody": ("[anonymous]\ntokens = []\n", "anonymous: unknown settings tokens"),
    "a certificate that is text": ('[principals.a]\ncertificate = "yes"\n', "certificate is true or false"),
}


@pytest.mark.parametrize("case", POLICIES)
def test_a_policy_that_is_wrong_anywhere_grants_nothing(case, tmp_path):
    text, reason = POLICIES[case]
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(BadInput, match=reason) as found:
        load_policy(path, "cubecast")
    assert str(path) in str(found.value) and ALICE not in str(found.value)


def test_a_broken_new_policy_changes_nothing(caplog):
    async def scenario():
        async with secured(RULES) as scene:
            scene.policy.write_text("[principals")
            with caplog.at_level(logging.ERROR):
                assert not scene.node.security.reload()
            (line,) = caplog.messages
            assert "stay as they were" in line and "is not valid TOML" in line
            async with connect(scene.address, login=Login(tls=certificates().anybody, token=ALICE)):
                pass

    run(scenario())


def test_logins_that_cannot_work_are_refused(tmp_path):
    with pytest.raises(BadInput, match="a key proves a name"):
        Login(key_file=tmp_path / "key")
    with pytest.raises(BadInput, match="cannot read"):
        Login(token_file=tmp_path / "missing")
    assert from_environment({"CUBECAST_TOKEN": "a\n"}) == {"token": "a"}
    assert from_environment({}) == {}


def test_what_cannot_be_a_token_names_nobody():
    assert holder(ALICE) == "alice"
    assert [holder(text) for text in ("", ".", ALICE[1:][5:], "a b." + ALICE.rpartition(".")[2])] == [None] * 4


def test_a_policy_knows_its_own_cluster_only():
    policy = parse_policy({"principals": {"alice": {"tokens": [digest(ALICE, "cubecast")]}}}, "cubecast")
    assert policy.authenticate(Token(ALICE)).name == "alice"
    for wrong in (replace(policy, cluster="other"), replace(policy, known={})):
        with pytest.raises(NotAuthenticated, match=BAD):
            wrong.authenticate(Token(ALICE))
    with pytest.raises(NotAuthenticated, match=BAD_KEY):
        policy.authenticate(KeyProof("alice", b"", b"", b""))


def test_secrets_do_not_show():
    shown = repr([Token(ALICE), Login(token=ALICE), KeyProof("a", b"secret", b"", b"secret"), _greets("a")])
    greeting = repr(ClientGreeting(MAGIC, VERSION, VERSION, "cubecast", "name", ALICE))
    assert ALICE not in shown + greeting and "secret" not in shown
    assert base64.b64encode(KEY.private_bytes_raw()).decode() not in repr(KEY)
