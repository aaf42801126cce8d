"""Looking takes a small share of a node's time, however much there is to see."""

from cubecast.net.web.routes import SHARE, AnswerCache


class Work:
    """Takes as long as it is told to, and is interrupted by others for as long."""

    def __init__(self, takes, interrupted=0.0):
        self.takes, self.interrupted, self.now, self.worked, self.made = takes, interrupted, 0.0, 0.0, 0

    def __call__(self):
        self.now += self.takes + self.interrupted
        self.worked += self.takes
        self.made += 1
        return self.made

    @property
    def clocks(self):
        return (lambda: self.now), (lambda: self.worked)


def test_what_is_quick_is_always_new():
    work = Work(takes=0.01)
    answer = AnswerCache(work, *work.clocks)
    assert [answer() for _ in range(3)] == [1, 2, 3]


def test_what_others_did_meanwhile_does_not_count():
    """A cheap answer stays new on a machine that is busy with other things."""
    work = Work(takes=0.01, interrupted=0.5)
    answer = AnswerCache(work, *work.clocks)
    assert [answer() for _ in range(3)] == [1, 2, 3]


def test_what_takes_long_is_given_again_for_a_while():
    work = Work(takes=0.5)
    answer = AnswerCache(work, *work.clocks)
    for _ in range(10_000):
        answer()
        work.now += 0.01
    assert 0.9 / (SHARE + 1) < work.made * work.takes / work.now < 1.1 / (SHARE + 1)
