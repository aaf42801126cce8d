"""§3.3.7: messages tagged with three topics that many share, sent once per neighbour or once per topic."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cubecast.experiments.stan.universes import Universe
from cubecast.sim.kernels.stan import Overlays
from cubecast.sim.kernels.stan_kernel import flood, make_flood

MESSAGES = 10
"""Per topic."""
SAVED = 0.1


def triplets(drawn: Universe) -> list[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    """Every topic with the two that correlate most with it, and who subscribes to all three; none where nobody does."""
    belongs = np.zeros((drawn.topics, drawn.processes), np.float32)
    for topic in range(drawn.topics):
        belongs[topic, drawn.of(topic)] = 1
    correlation = np.asarray(np.corrcoef(belongs))
    np.fill_diagonal(correlation, -2)
    found = []
    for topic in range(drawn.topics):
        three = np.array([topic, *np.argsort(-correlation[topic], kind="stable")[:2]], np.int64)
        common = np.flatnonzero(belongs[three].all(axis=0)).astype(np.int32)
        if len(common):
            found.append((three, common))
    return found


def savings(drawn: Universe, overlays: Overlays, rng: Generator) -> dict[str, float]:
    """Share of the relaying processes that save more than a tenth of their messages, and hops until a delivery."""
    together, apart = make_flood(drawn.processes, 3), make_flood(drawn.processes, 1)
    floods = 0
    for three, common in triplets(drawn):
        for source in rng.choice(common, MESSAGES).tolist():
            floods += 1
            flood(overlays.world, three, source, together)
            for topic in three:
                flood(overlays.world, np.array([topic]), source, apart)
    relays = apart.sent > 0
    saved = 1 - together.sent[relays] / apart.sent[relays]
    return {
        "floods": floods,
        "saving": float((saved > SAVED).mean()),
        "hops": float(together.sums[1] / together.sums[0]),
        "hops_apart": float(apart.sums[1] / apart.sums[0]),
    }
