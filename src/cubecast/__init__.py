"""cubecast: publish/subscribe in which every subscriber sees causes before effects."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cubecast import sync as sync
    from cubecast.api.client import Client as Client
    from cubecast.api.connect import connect as connect
    from cubecast.api.message import Batch as Batch
    from cubecast.api.message import Gap as Gap
    from cubecast.api.message import Message as Message
    from cubecast.api.message import Missing as Missing
    from cubecast.api.node import Node as Node
    from cubecast.api.subscription import Subscription as Subscription
    from cubecast.errors import BadInput as BadInput
    from cubecast.errors import Closed as Closed
    from cubecast.errors import CubecastError as CubecastError
    from cubecast.errors import DamagedLog as DamagedLog
    from cubecast.errors import Fenced as Fenced
    from cubecast.errors import Forgotten as Forgotten
    from cubecast.errors import HandedOver as HandedOver
    from cubecast.errors import LocalProtocolError as LocalProtocolError
    from cubecast.errors import Missed as Missed
    from cubecast.errors import NoResponder as NoResponder
    from cubecast.errors import NoRoom as NoRoom
    from cubecast.errors import NotAuthenticated as NotAuthenticated
    from cubecast.errors import NotDurable as NotDurable
    from cubecast.errors import NotKept as NotKept
    from cubecast.errors import NotPermitted as NotPermitted
    from cubecast.errors import OutcomeUnknown as OutcomeUnknown
    from cubecast.errors import PartlyPublished as PartlyPublished
    from cubecast.errors import RemoteProtocolError as RemoteProtocolError
    from cubecast.errors import RequestFailed as RequestFailed
    from cubecast.errors import SlowConsumer as SlowConsumer
    from cubecast.errors import Unreachable as Unreachable
    from cubecast.ids import MessageId as MessageId
    from cubecast.net.links.login import Login as Login
    from cubecast.net.settings.security import TlsSettings as TlsSettings

# Imported when first used: the laboratory and the command line need none of it, and start faster without.
_PLACES = {
    **dict.fromkeys(("Batch", "Gap", "Message", "Missing"), "cubecast.api.message"),
    **dict.fromkeys(
        ("BadInput", "Closed", "CubecastError", "DamagedLog", "Forgotten", "LocalProtocolError"), "cubecast.errors"
    ),
    **dict.fromkeys(
        ("Missed", "NoResponder", "NoRoom", "NotAuthenticated", "NotDurable", "NotKept"), "cubecast.errors"
    ),
    **dict.fromkeys(
        ("NotPermitted", "OutcomeUnknown", "PartlyPublished", "RemoteProtocolError", "RequestFailed"), "cubecast.errors"
    ),
    **dict.fromkeys(("Fenced", "HandedOver", "SlowConsumer", "Unreachable"), "cubecast.errors"),
    "Client": "cubecast.api.client",
    "Login": "cubecast.net.links.login",
    "MessageId": "cubecast.ids",
    "Node": "cubecast.api.node",
    "Subscription": "cubecast.api.subscription",
    "TlsSettings": "cubecast.net.settings.security",
    "connect": "cubecast.api.connect",
}


def __getattr__(name: str) -> Any:
    if name == "sync":
        return import_module("cubecast.sync")
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'cubecast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_PLACES, "sync", "__version__"])
