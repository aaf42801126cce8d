"""What a thin client has published is under way or certainly not sent, and it knows which."""

from hypothesis import given
from hypothesis import strategies as st

from cubecast.net.gateway.messages import AwaitStable, Publish
from cubecast.net.gateway.outbox import TOPICS_REMEMBERED, Outbox, Uncertain
from cubecast.net.port.chunks import MESSAGE_OVERHEAD, MOST_BYTES, MOST_MESSAGES, pieces

CHARGE = 40 + MESSAGE_OVERHEAD


def test_one_turn_of_one_topic_is_one_frame():
    outbox = Outbox(budget=1000)
    assert [outbox.publish("a", [b"1"]), outbox.publish("a", [b"2", b"3"]), outbox.publish("b", [b"4"])] == [1, 3, 4]
    assert outbox.take() == [Publish(1, "a", [b"1", b"2", b"3"]), Publish(2, "b", [b"4"])]
    assert outbox.take() == []


def test_no_more_is_sent_than_there_is_credit_for_and_room_is_made_by_taking():
    outbox = Outbox(budget=CHARGE * 2 + 1, credit=CHARGE)
    for topic in "abc":
        outbox.publish(topic, [bytes(40)])
    assert not outbox.has_room
    assert [message.topic for message in outbox.take()] == ["a"]
    outbox.taken(1)
    assert outbox.has_room and outbox.left == 2
    assert [message.topic for message in outbox.take()] == ["b"]
    outbox.taken(2)
    assert [message.topic for message in outbox.take()] == ["c"]
    outbox.taken(3)
    assert outbox.is_empty


def test_how_far_a_topic_was_published_on_is_known_of_the_last_ones():
    outbox = Outbox(budget=1000)
    assert outbox.last("a") == 0
    assert [outbox.publish(topic, [b"1", b"2"]) for topic in "abb"] == [2, 4, 6]
    assert [outbox.last(topic) for topic in "abc"] == [2, 6, 0]
    for number in range(TOPICS_REMEMBERED):
        outbox.publish(str(number), [b""])
    assert outbox.last("a") == outbox.accepted, "nobody remembers, so everything counts"
    assert outbox.last("7") == 14


def test_a_message_larger_than_the_credit_travels_alone():
    outbox = Outbox(budget=100, credit=50)
    outbox.publish("a", [bytes(90)])
    assert len(outbox.take()) == 1


def test_when_the_connection_breaks_what_was_sent_is_uncertain_and_the_rest_is_kept():
    outbox = Outbox(budget=1000, credit=50 + 2 * MESSAGE_OVERHEAD)
    outbox.publish("a", [bytes(30)])
    outbox.publish("b", [bytes(20)])
    outbox.publish("c", [bytes(30)])
    outbox.ask(AwaitStable(1, "b"), 2)
    outbox.ask(AwaitStable(2, "c"), 3)
    assert [message.topic for message in outbox.take()] == ["a", "b"]
    outbox.taken(1)
    assert outbox.connection_lost() == Uncertain(1, ("b",))
    assert outbox.base == 2
    assert outbox.take() == [Publish(1, "c", [bytes(30)]), AwaitStable(2, "c")]


STEPS = st.lists(
    st.tuples(st.just("publish"), st.sampled_from("ab"), st.integers(1, 60))
    | st.tuples(st.sampled_from(["send", "taken", "lost"]), st.just(""), st.just(0)),
    max_size=60,
)


@given(STEPS)
def test_every_message_is_sent_at_most_once_and_in_order(steps):
    outbox = Outbox(budget=600, credit=250)
    sent: list[bytes] = []
    on_connection, accepted, uncertain, taken = [], 0, 0, 0
    for step, topic, size in steps:
        if step == "publish" and outbox.has_room:
            accepted += 1
            assert outbox.publish(topic, [b"%d:" % accepted + bytes(size)]) == accepted
        elif step == "send":
            for message in outbox.take():
                assert isinstance(message, Publish) and message.number == len(on_connection) + 1
                on_connection.append(len(message.payloads))
                sent += message.payloads
        elif step == "taken":
            taken = len(sent) - uncertain
            outbox.taken(len(on_connection))
        elif step == "lost":
            uncertain += outbox.connection_lost().messages
            on_connection = []
        assert outbox.left <= accepted - taken - uncertain
    numbers = [int(payload.partition(b":")[0]) for payload in sent]
    assert numbers == list(range(1, len(numbers) + 1))


@given(st.lists(st.integers(0, 40_000), max_size=1200))
def test_pieces_are_small_and_lose_nothing(sizes):
    payloads = [bytes(size) for size in sizes]
    cut = list(pieces(payloads))
    assert [payload for piece in cut for payload in piece] == payloads
    for piece in cut:
        assert 1 <= len(piece) <= MOST_MESSAGES
        assert len(piece) == 1 or sum(map(len, piece)) <= MOST_BYTES
