"""The JavaScript client's parts, tested in the browser they are for; and its bytes beside the Python package's."""

import json
import re
from base64 import b64decode, b64encode
from pathlib import Path

import pytest

from cubecast.api import envelope

UNITS = Path(__file__).parent / "units"
TEST = re.compile(r"^export (?:async )?function (test\w+)", re.MULTILINE)
FOUND = [(path.name, name) for path in sorted(UNITS.glob("*.js")) for name in TEST.findall(path.read_text())]

RUN = "async ([file, name]) => { const module = await import(`/units/${file}`); await module[name](); }"
RESEAL = """async (samples) => {
  const { dataOf, open, seal } = await import("/client/envelope.js");
  return samples.map((sample) => {
    const sealed = Uint8Array.from(atob(sample), (letter) => letter.charCodeAt(0));
    return btoa(String.fromCharCode(...seal(dataOf(sealed), open(sealed).headers)));
  });
}"""

DATA = [
    b"plain",
    b"",
    b"\xc1 begins with the mark",
    bytes(range(256)),
    "",
    "text with ümläuts and \U0001f600",
    "\ufeffbegins with a mark of byte order",
    0,
    -1,
    1.5,
    None,
    True,
    [1, [2, [3]], {}],
    {"by": "ann", "nested": {"deep": ["a", None, False, 2**40]}},
    "long " * 20_000,
]
HEADERS = [
    None,
    {"by": "ann"},
    {"whole": 7, "large": 2**40, "part": -0.5, "yes": True, "no": False},
    {f"header {number}": "ü" * number for number in range(40)},
]


@pytest.mark.parametrize(("file", "name"), FOUND, ids=[name for _, name in FOUND])
def test_unit(chromium, unit_page, file, name):
    chromium.run(unit_page.evaluate(RUN, [file, name]))


def test_all_units_are_found():
    assert {file for file, _ in FOUND} == {path.name for path in UNITS.glob("*.js")} - {"asserting.js"}


def test_envelopes_are_the_python_packages_byte_for_byte(chromium, unit_page):
    sealed = [envelope.seal(data, headers) for data in DATA for headers in HEADERS]
    again = chromium.run(unit_page.evaluate(RESEAL, [b64encode(one).decode() for one in sealed]))
    for before, after in zip(sealed, map(b64decode, again), strict=True):
        assert after == before, (before[:80], after[:80])
    assert json.loads(envelope.body(sealed[-5])) == DATA[-2]
