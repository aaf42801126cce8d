"""Faults inside a node, one by one."""

from dataclasses import replace
from random import Random

from cubecast.protocol.cubecast import Cubecast, Parameters
from cubecast.protocol.cubecast.packets import WaveAck
from cubecast.protocol.cubecast.parameters import Timer
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.vocabulary import Entry
from cubecast.protocol.effects import Send, SetTimer
from cubecast.protocol.inputs import Publish, Subscribe, Unsubscribe
from cubecast.protocol.inputs import Timer as Due
from cubecast.sim.fault_injection import Tampered, _fate
from cubecast.sim.faults import Half, parse_faults
from cubecast.sim.schedule import Schedule, shrink
from cubecast.sim.swarm import draw

ALL = 0b1111


def tampered(text, node=0):
    faults = parse_faults(text)
    died = []
    half = [next((fault for fault in faults if isinstance(fault, Half)), None)]
    machine = Cubecast(node, Parameters(2, founders=ALL, ids=ALL), initial={"t": ALL})
    return Tampered(machine, faults, half, lambda: died.append(node)), died


def sends(effects):
    return [effect for effect in effects if isinstance(effect, Send)]


def test_half_of_the_children_get_it_and_the_node_is_silent_from_then_on():
    machine, died = tampered("half:0@100")
    assert sends(machine.handle(50.0, Publish("t", [b"x"])))[0].peers == (2, 1)
    effects = machine.handle(100.0, Publish("t", [b"y"]))
    assert sends(effects)[-1].peers == (2,)
    assert effects[-1] is sends(effects)[-1], "nothing after it happens"
    assert died == [0]
    assert machine.handle(100.0, Publish("t", [b"z"])) == []


def test_timers_fire_twice():
    machine, _ = tampered("twice:0@0-5000")
    machine.handle(0.0, Publish("t", [b"x"]))
    machine.handle(1000.0, Due(Timer.RETRY))
    repeated = [
        effect for effect in sends(machine.handle(2000.0, Due(Timer.RETRY))) if type(effect.packet) is Publication
    ]
    assert len(repeated) == 2


def test_timers_fire_late():
    machine, _ = tampered("late:0:70@0-100")
    (timer,) = (effect for effect in machine.handle(0.0, Publish("t", [b"x"])) if isinstance(effect, SetTimer))
    assert timer.at == 1000.0 + 70.0


def test_a_clock_that_jumps_moves_neither_timers_nor_anything_else():
    machine, _ = tampered("jump:0:-5000@10")
    (timer,) = (effect for effect in machine.handle(20.0, Publish("t", [b"x"])) if isinstance(effect, SetTimer))
    assert timer.at == 1020.0


def test_what_others_know_is_learned_in_two_steps():
    machine, _ = tampered("twosteps:0@0-1000")
    machine.handle(0.0, Unsubscribe("t"))
    machine.handle(0.0, Subscribe("t"))
    entries = tuple(Entry(node, 0, 2, True) for node in (1, 2))
    answer = WaveAck(0, (), "t", 0, 2, entries)
    for peer in (1, 2, 3):
        machine.on_packet(10.0, peer, answer)
    assert any("wave waits for nodes [1, 2, 3]" in line for line in machine.waiting()), "the first step is no answer"
    for peer in (1, 2, 3):
        machine.on_packet(20.0, peer, answer)
    assert not any("wave" in line for line in machine.waiting())


def test_one_kind_of_packets_is_held_up():
    links = parse_faults("hold:WaveAck:400@0-1000")
    answer = WaveAck(0, (), "t", 0, 1, ())
    assert _fate(links, Random(1), 10.0, 0, 1, answer) == [400.0]
    assert _fate(links, Random(1), 2000.0, 0, 1, answer) == [0.0]
    assert _fate(parse_faults("hold:Ack:400@0-1000"), Random(1), 10.0, 0, 1, answer) == [0.0]


def test_packets_are_sent_again_much_later():
    fates = [_fate(parse_faults("resend:50%@0-1000"), Random(seed), 10.0, 0, 1, None) for seed in range(50)]
    assert {len(copies) for copies in fates} == {1, 2}
    assert max(max(copies) for copies in fates) > 1000


def test_every_kind_is_drawn_printed_and_shrunk():
    schedules = [draw("cubecast", seed) for seed in range(1, 400)]
    kinds = {type(fault).__name__ for schedule in schedules for fault in schedule.faults}
    assert kinds >= {"Half", "Flicker", "Hold", "TwoSteps", "TimersTwice", "LateTimers", "ClockJump"}
    assert all(Schedule.from_text(schedule.to_text()) == schedule for schedule in schedules)
    everything = replace(schedules[0], faults=tuple({type(f): f for s in schedules for f in s.faults}.values()))
    smaller = shrink(everything, lambda schedule: any(isinstance(fault, Half) for fault in schedule.faults))
    assert [type(fault).__name__ for fault in smaller.faults] == ["Half"]


def test_batches_of_all_sizes_are_drawn():
    schedules = [draw("cubecast", seed) for seed in range(1, 200)]
    assert {schedule.settings["max_batch"] for schedule in schedules} == {"1", "2", "512"}
    assert max(action.messages for schedule in schedules for action in schedule.actions) >= 20
