"""Errors that say who is at fault, and whether the operation happened."""


class CubecastError(Exception):
    """Base of everything this package raises on purpose."""


class BadInput(CubecastError):  # noqa: N818 - it is the user's input that is bad, not an accident of ours
    """The user asked for something impossible. Nothing was done. The command line turns it into exit code 2."""


class NotAuthenticated(BadInput):
    """The client did not prove to be a principal this node knows. Nothing was done."""


class NotPermitted(BadInput):
    """The policy does not grant this to the client. Nothing was done."""


class LocalProtocolError(CubecastError):
    """This side asked its own protocol machine for something illegal. Nothing was done."""


class RemoteProtocolError(CubecastError):
    """The other side sent something no correct peer sends. It was refused before any state changed."""


class TraceError(CubecastError):
    """A trace cannot be read: missing, truncated, or of another schema version."""


class TruncatedTraceError(TraceError):
    """A trace whose data is missing or damaged: what is there cannot be judged, what is not there cannot be known."""


class Unreachable(CubecastError, ConnectionError):  # noqa: N818 - a state, not an accident
    """No node answers at any of these addresses. Nothing was done."""


class OutcomeUnknown(CubecastError):  # noqa: N818 - the operation may well have succeeded
    """The way to the answer broke: the operation may have happened and may not have. Asking again may repeat it."""


class HandedOver(OutcomeUnknown):
    """The node took it and passes it on. Whether everybody has it is what its protocol never learns."""


class Closed(CubecastError):  # noqa: N818 - a state, not an accident
    """The node, client or subscription is closed. Nothing was done."""


class SlowConsumer(CubecastError):  # noqa: N818 - names who is at fault
    """The application did not read a subscription in time and was cut off, as its policy says."""


class NoRoom(CubecastError):  # noqa: N818 - a state, not an accident
    """The budget for publications is used up at the moment. Nothing was done; wait and ask again."""


class Missed(CubecastError):  # noqa: N818 - names what happened to the reader
    """Messages of a subscription are lost to it. What is read next comes after them; `args[1]` is the `Gap`."""


class NoResponder(CubecastError):  # noqa: N818 - a state, not an accident
    """The topic of a request has no subscriber: it was published and reached no server."""


class RequestFailed(CubecastError):  # noqa: N818 - the other side's failure, told to the one who asked
    """The server of the request could not: the text is what the handler raised."""


class PartlyPublished(CubecastError):  # noqa: N818 - names what happened
    """The first messages of a list were published, `args[1]` of them; the next was not, for the reason in the text,
    which says what is known of those behind it."""


class NotDurable(CubecastError):  # noqa: N818 - a state, not an accident
    """The log did not take it, at least not yet. The text says whether it was published."""


class DamagedLog(CubecastError):  # noqa: N818 - a state, not an accident
    """A part of a log is not what was written. The text names file and place; `args[1:]` the offsets, where known."""


class Forgotten(CubecastError):  # noqa: N818 - a state, not an accident
    """These offsets are not kept any more, as the log's retention says; `args[1]` is the first one that is."""


class Fenced(BadInput):
    """Another program publishes under this producer's name by now. Nothing more is published from here."""


class NotKept(BadInput):
    """The node's log cannot tell what a subscription wants to begin with."""
