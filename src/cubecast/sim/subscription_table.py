"""Who subscribes to what, from a table that `cubecast workload` made: columns `user` and `topic`."""

from pathlib import Path

from cubecast.errors import BadInput
from cubecast.ids import NodeId, Topic


def read_subscriptions(path: Path, nodes: int) -> dict[Topic, list[NodeId]]:
    """Users are nodes in the order of their names; topics by their number of subscribers, the largest first."""
    import pyarrow.parquet  # here, because most simulations need no table
    from pyarrow import ArrowException

    try:
        table = pyarrow.parquet.read_table(path, columns=["user", "topic"])
    except (OSError, ArrowException) as error:
        raise BadInput(f"{path} is no table of subscriptions (columns user and topic): {error}") from None
    users = sorted(set(table["user"].to_pylist()))
    if len(users) > nodes:
        raise BadInput(f"{path} has {len(users)} users for {nodes} nodes; give --nodes {len(users)} or more")
    place = {user: node for node, user in enumerate(users)}
    members: dict[Topic, set[NodeId]] = {}
    for user, topic in zip(table["user"].to_pylist(), table["topic"].to_pylist(), strict=True):
        members.setdefault(str(topic), set()).add(place[user])
    return {topic: sorted(members[topic]) for topic in sorted(members, key=lambda one: (-len(members[one]), one))}
