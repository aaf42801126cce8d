"""One machine told many wrong things: it refuses them or survives them, whatever it was told before."""

from contextlib import suppress

from bench.hostile_packets import Pick, hostile_frame, hostile_packet
from cubecast.errors import RemoteProtocolError
from cubecast.ids import MessageId
from cubecast.protocol.cubecast import Cubecast, Parameters
from cubecast.protocol.cubecast.parameters import Detection, Timer
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.vocabulary import Start
from cubecast.wire.codec import codec_named

decode = codec_named("cubecast").decode
encode = codec_named("cubecast").encode

GOOD = Publication(0, (), "t", MessageId(0, 0, 1), (b"x",), b"\x0f", (), (Start(1, b"\x0f"),), (), 0)


def machine() -> Cubecast:
    parameters = Parameters(2, founders=0b1111, detection=Detection.DIAGNOSIS, round_length=1.0, patience=3.0)
    made = Cubecast(3, parameters, initial={"t": 0b1111})
    made.on_start(0.0)
    made.on_packet(0.0, 0, GOOD)
    return made


def torment(pick: Pick, steps: int) -> int:
    """Any exception but RemoteProtocolError is a finding. How many packets were taken."""
    tormented, taken = machine(), 0
    for now in range(1, steps + 1):
        what = pick(14)
        if what == 0:
            tormented.on_timer(now, Timer.RETRY)
        elif what == 1:
            tormented.on_timer(now, Timer.ROUND)
        elif what == 2:
            tormented.publish(now, "t", (b"y",))
        elif what == 12:
            tormented.on_peer_down(now, pick(3))
        elif what == 13:
            tormented.on_peer_up(now, pick(3))
        else:
            frame = hostile_frame(pick) if what == 3 else encode(hostile_packet(pick))
            with suppress(RemoteProtocolError):
                effects = tormented.on_packet(now, pick(4), decode(frame))
                taken += 1
                for effect in effects:
                    if hasattr(effect, "packet"):
                        encode(effect.packet)
        tormented.waiting()
    return taken
