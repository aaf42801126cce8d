"""What `import cubecast` offers, and what it costs."""

import re
import subprocess
import sys

import cubecast
from cubecast import errors
from support.sources import ROOT

MOST_NAMES = 35
NOT_RAISED = ("TraceError", "TruncatedTraceError", "LocalProtocolError")
"""Of the laboratory, or of nobody but ourselves."""
HEAVY = ("numpy", "pyarrow", "pandas", "pyspark", "numba", "uvloop", "msgspec")


def test_the_public_names_exist_and_are_few():
    names = [name for name in dir(cubecast) if not name.startswith("_")]
    assert 10 < len(names) <= MOST_NAMES
    for name in names:
        assert getattr(cubecast, name) is not None
    assert cubecast.sync.connect


def test_every_error_that_an_application_can_meet_is_a_public_name():
    raised = {name for name in vars(errors) if isinstance(getattr(errors, name), type)} - set(NOT_RAISED)
    assert len(raised) > 15 and raised <= set(dir(cubecast))


def test_every_error_the_documents_mention_is_a_public_name():
    texts = "\n".join(path.read_text() for path in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
    known = {name for name in vars(errors) if isinstance(getattr(errors, name), type)}
    told = {name for name in re.findall(r"`(\w+)`", texts) if name in known} - set(NOT_RAISED)
    assert len(told) > 10 and told <= set(dir(cubecast))


def test_who_cannot_be_reached_is_a_connection_error_too():
    assert issubclass(cubecast.Unreachable, ConnectionError) and issubclass(
        cubecast.Unreachable, cubecast.CubecastError
    )
    assert not issubclass(cubecast.Unreachable, cubecast.BadInput)


def test_an_import_loads_nothing_heavy():
    program = f"import cubecast, sys; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_clients_and_nodes_need_no_laboratory():
    program = "import cubecast, sys; cubecast.Node; print([n for n in ('numpy', 'pyarrow') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
