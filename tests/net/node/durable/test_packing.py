"""What is written of a batch: the packet it came in when that is worth it, and the same messages either way."""

import pytest

from cubecast.ids import MessageId
from cubecast.log.record import Broken, Entry, Packed, decode_frame, frames_of
from cubecast.log.store import Store
from cubecast.net.node.durable.recorder import LARGE, as_it_came
from cubecast.protocol.cubecast.publication_packets import Direct, Publication
from support.live_codec import LIVE, decode, encode
from support.running import run

ME = MessageId(3, 1, 70)


def packet(kind, payloads):
    return kind(1, (), "news", ME, tuple(payloads), b"\x0f", (), (), (), 69)


def frame_of(packed: Packed) -> bytes:
    entry = Entry("news", 5, packed.many, ME, 1.5, *packed[1:])
    pieces, (length,) = frames_of([entry])
    frame = b"".join(pieces)
    assert len(frame) == length
    return frame


@pytest.mark.parametrize("kind", [Publication, Direct])
@pytest.mark.parametrize("payloads", [[b"a" * 100] * 100, [b"", b"x", b"y" * 70_000], [b"small"]])
def test_messages_are_the_same_whichever_way_they_were_packed(kind, payloads):
    arrived = decode(encode(packet(kind, payloads)))
    packed = as_it_came(arrived.payloads, arrived, LIVE)
    record = decode_frame(frame_of(packed))
    assert (record.topic, record.first, record.payloads, record.offset, record.at) == ("news", ME, payloads, 5, 1.5)
    assert (packed.block is arrived.frame) == (len(arrived.frame) >= LARGE)


def test_an_own_publication_is_encoded_once():
    own = packet(Publication, [b"z" * 5000])
    packed = as_it_came(own.payloads, own, LIVE)
    assert packed.block is own.frame


def test_a_batch_without_a_packet_is_packed():
    packed = as_it_came([b"a" * 5000], None, LIVE)
    assert decode_frame(frame_of(packed)).payloads == [b"a" * 5000]


@pytest.mark.parametrize("element", [0, 3, 200])
def test_a_block_in_which_no_messages_are_is_broken_and_tells_whose_they_were(element):
    whole = as_it_came([b"a" * 5000], packet(Publication, [b"a" * 5000]), LIVE)
    with pytest.raises(Broken, match="holds no messages") as told:
        decode_frame(frame_of(whole._replace(element=element)))
    assert told.value.args[1].first == ME


def test_packets_are_read_back_from_the_disk(tmp_path):
    async def story():
        store = await Store.open(tmp_path)
        arrived = decode(encode(packet(Publication, [b"a" * 100] * 100)))
        store.append_packed("news", ME, as_it_came(arrived.payloads, arrived, LIVE), 1.0)
        await store.synced(store.ticket)
        (record,) = await store.read("news", 60, 1)
        assert (record.first.counter, record.payloads) == (129, [b"a" * 100] * 41)
        await store.close()

    run(story())


def test_frames_of_several_batches_lie_one_behind_the_other():
    batches = [[b"a"], [b"b" * 70_000, b""], [b"c"] * 300]
    packed = [as_it_came(payloads, None, LIVE) for payloads in batches]
    entries = [Entry(f"topic {number}", 7, one.many, ME, 2.5, *one[1:]) for number, one in enumerate(packed)]
    pieces, lengths = frames_of(entries)
    data = b"".join(pieces)
    assert sum(lengths) == len(data)
    for number, (payloads, length) in enumerate(zip(batches, lengths, strict=True)):
        record = decode_frame(data[:length])
        assert (record.topic, record.payloads) == (f"topic {number}", payloads)
        data = data[length:]
