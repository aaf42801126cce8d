"""Settings of a node that cannot work are refused before anything is done."""

import pytest

from cubecast.errors import BadInput
from cubecast.net.addresses import Address
from cubecast.net.config import NodeConfig

EVERYWHERE = Address("0.0.0.0", 7400)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"listen": EVERYWHERE}, "advertise"),
        ({"listen": Address("::", 7400)}, "advertise"),
        ({"dimension": 0}, "dimension"),
        ({"node": 64}, "does not exist"),
        ({"max_payload": 1 << 21}, "max_payload must be"),
        ({"cluster": ""}, "cluster"),
    ],
)
def test_refused(settings, reason):
    with pytest.raises(BadInput, match=reason):
        NodeConfig(**settings)


def test_a_node_that_listens_everywhere_says_where_it_is_found():
    assert NodeConfig(listen=EVERYWHERE, advertise=Address("10.0.0.7", 7400)).advertise == ("10.0.0.7", 7400)
