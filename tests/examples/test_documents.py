"""The programs in the documents run and print what they should."""

import re
import subprocess
import sys

import pytest

from support.sources import ROOT

BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
EXPECTED = {
    "README.md": ["['who is there?', 'bob, who read: who is there?']\n"],
    "docs/quickstart.md": ["chat.room ann hello\n", "42\n", "it works\n"],
    "docs/api.md": ["499500\n"],
    "docs/filters.md": ["a table\n"],
}


def test_no_program_is_forgotten():
    for name, expected in EXPECTED.items():
        assert len(BLOCK.findall((ROOT / name).read_text())) == len(expected)


@pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name in EXPECTED for number in range(len(EXPECTED[name]))]
)
def test_programs_in_documents(name, number):
    program = BLOCK.findall((ROOT / name).read_text())[number]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr, done.returncode) == (EXPECTED[name][number], "", 0)
