"""Looking takes a small share of a node's time, however much there is to see."""

from cubecast.net.web.sparing import SHARE, Sparing


class Work:
    """Takes as long as it is told to."""

    def __init__(self, takes):
        self.takes, self.now, self.made = takes, 0.0, 0

    def __call__(self):
        self.now += self.takes
        self.made += 1
        return self.made

    def clock(self):
        return self.now


def test_what_is_quick_is_always_new():
    work = Work(takes=0.01)
    answer = Sparing(work, work.clock)
    assert [answer() for _ in range(3)] == [1, 2, 3]


def test_what_takes_long_is_given_again_for_a_while():
    work = Work(takes=0.5)
    answer = Sparing(work, work.clock)
    for _ in range(10_000):
        answer()
        work.now += 0.01
    assert 0.9 / (SHARE + 1) < work.made * work.takes / work.now < 1.1 / (SHARE + 1)
