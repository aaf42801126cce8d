"""What `import cubecast` offers, and what it costs."""

import subprocess
import sys

import cubecast

MOST_NAMES = 25
HEAVY = ("numpy", "pyarrow", "pandas", "pyspark", "numba", "uvloop", "msgspec")


def test_the_public_names_exist_and_are_few():
    names = [name for name in dir(cubecast) if not name.startswith("_")]
    assert 10 < len(names) <= MOST_NAMES
    for name in names:
        assert getattr(cubecast, name) is not None
    assert cubecast.sync.connect


def test_an_import_loads_nothing_heavy():
    program = f"import cubecast, sys; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_clients_and_nodes_need_no_laboratory():
    program = "import cubecast, sys; cubecast.Node; print([n for n in ('numpy', 'pyarrow') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
