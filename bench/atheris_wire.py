"""A coverage-guided fuzzer for everything that reads bytes of others: `python -m bench.atheris_wire [corpus]`.

Runs until it finds something or is stopped; libFuzzer's options work (`-runs=10000000`, `-max_len=4096`).
Needs Atheris, which is no dependency of this project.
"""

import sys
from contextlib import suppress

from bench.hostile_machine import torment
from cubecast.errors import RemoteProtocolError
from cubecast.net.links.framing import Splitter
from cubecast.net.links.handshake import decode_answer, decode_opening
from cubecast.wire.codec import codec_named

decode = codec_named("cubecast").decode

MISSING = "Atheris is not installed; `pip install atheris` (Linux, CPython with wheels for it) and start this again"


def read_bytes(data: bytes) -> None:
    """Decoders refuse with RemoteProtocolError and nothing else."""
    for reader in (decode, decode_opening, decode_answer, Splitter().feed):
        with suppress(RemoteProtocolError):
            reader(data)


def _started() -> None:
    try:
        import atheris
    except ImportError:
        raise SystemExit(MISSING) from None

    def one_input(data: bytes) -> None:
        read_bytes(data)
        provider = atheris.FuzzedDataProvider(data)
        torment(lambda n: provider.ConsumeIntInRange(0, n - 1), 1 + len(data) // 64)

    atheris.instrument_all()
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    _started()
