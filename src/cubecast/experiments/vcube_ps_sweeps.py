"""VCube-PS against one tree per topic: the settings behind Figures 5.6, 5.7 and 5.8 of the thesis (§5.6.2, §5.6.3).

Common to all: processing and transmission take 1 u.t., propagation 100 u.t., 40 runs. Each publisher publishes once.
"""

from cubecast.experiments.sweep.grid import Parameters, Sweep

RUNS = 40
PROTOCOLS = ("vcube-ps", "srpt")
SMALL = tuple(2**d for d in range(3, 11))
LARGE = (2048, 4096)
TIMES: Parameters = {"processing": 1.0, "transmission": 1.0, "propagation": "constant:100", "messages": 1}

# Fig. 5.8a: everybody subscribes; the publications fall at random into 1000 u.t.
_SEVERAL: Parameters = {**TIMES, "subscribers": "100%", "window": 1000.0}

PUBLISHERS = Sweep(
    "vcube-ps-publishers",
    grid={"nodes": SMALL, "publishers": ("25%", "100%"), "protocol": PROTOCOLS},
    parameters=_SEVERAL,
    runs=RUNS,
)
PUBLISHERS_LARGE = Sweep(
    "vcube-ps-publishers-large",
    grid={"nodes": LARGE, "publishers": ("25%", "100%"), "protocol": PROTOCOLS},
    parameters=_SEVERAL,
    runs=RUNS,
)
"""The rest of the figure: up to 34 million packet events in one run, so it has a name of its own."""

# Fig. 5.6: one publication; a quarter of the nodes or all of them subscribe.
SUBSCRIBERS = Sweep(
    "vcube-ps-subscribers",
    grid={"nodes": (*SMALL, *LARGE), "subscribers": ("25%", "100%"), "protocol": PROTOCOLS},
    parameters={**TIMES, "publishers": 1},
    runs=RUNS,
)

# Fig. 5.7: the same at the largest size, from a tenth of the nodes to all.
SUBSCRIBER_SHARE = Sweep(
    "vcube-ps-subscriber-share",
    grid={"subscribers": tuple(f"{share}%" for share in range(10, 101, 10)), "protocol": PROTOCOLS},
    parameters={**TIMES, "nodes": 4096, "publishers": 1},
    runs=RUNS,
)
