"""`make mutants` plants real faults: each changes its module, keeps it readable for Python, and has one name."""

import ast
from importlib.util import module_from_spec, spec_from_file_location
from random import Random

from support.sources import ROOT

_spec = spec_from_file_location("mutants", ROOT / "scripts" / "mutants.py")
assert _spec is not None and _spec.loader is not None
planting = module_from_spec(_spec)
_spec.loader.exec_module(planting)

SOURCE = """
def step(a, b):
    if a < b and a:
        note(a)
    return a + 1

def invariants(a):
    assert a
    if a: note(a)
"""


def test_every_operator_has_its_place_and_helpers_for_people_are_left_alone():
    found = {name: planting.spoilt(SOURCE, place) for place, name in enumerate(planting.sites(SOURCE))}
    assert list(found) == [
        "step:negate:0",
        "step:junction:0",
        "step:boundary:0",
        "step:omit:0",
        "step:grow:0",
    ]
    assert "if not (a < b and a)" in found["step:negate:0"]
    assert "a < b or a" in found["step:junction:0"] and "a <= b" in found["step:boundary:0"]
    assert "return a + 2" in found["step:grow:0"] and "note(a)" not in found["step:omit:0"].split("def invariants")[0]


def test_a_hundred_faults_over_all_rooms_by_default():
    for name, room in planting.ROOMS.items():
        planted = planting.planted(room, 3, Random(name))
        assert len({fault for fault, _ in planted}) == 3
        for fault, text in planted:
            module = planting.ROOT / planting.PACKAGE / fault.partition(":")[0]
            assert ast.unparse(ast.parse(module.read_text())) != ast.unparse(ast.parse(text)), fault
    assert sum(room.share for room in planting.ROOMS.values()) >= 100


def test_what_is_said_to_be_no_fault_exists():
    for fault, proof in planting.EQUIVALENT.items():
        module, _, name = fault.partition(":")
        text = (planting.ROOT / planting.PACKAGE / module).read_text()
        assert proof and name in planting.sites(text), fault


def test_tests_that_name_the_module_come_first():
    room = planting.ROOMS["net"]
    files = planting.nearest(room.tests, "net/links/handshake.py")
    assert all((planting.ROOT / file).is_file() for file in files)
    assert "cubecast.net.links.handshake" in (planting.ROOT / files[0]).read_text()
    assert "cubecast.net.links.handshake" not in (planting.ROOT / files[-1]).read_text()


def test_a_fault_that_is_not_decided_in_time_is_open():
    stuck = [planting.sys.executable, "-c", "while True: pass"]
    assert planting._run(stuck, dict(planting.os.environ), 0.2) == planting.OPEN
