"""Messages as lines: for people, or a JSON object each."""

import base64
from typing import Any

from cubecast.api.message import Message
from cubecast.errors import RemoteProtocolError


def as_text(message: Message, *, show_topic: bool = False) -> str:
    try:
        text = message.body().decode(errors="replace")
    except RemoteProtocolError as error:
        text = f"({error})"  # a publisher sent what no client of ours sends: that is no reason to stop listening
    return f"{message.topic} {text}" if show_topic else text


def as_json(message: Message) -> dict[str, Any]:
    about = {"topic": message.topic, "source": message.source, "incarnation": message.incarnation}
    logged = {} if message.offset is None else {"offset": message.offset, "time": message.time}
    try:
        content = _content(message)
    except RemoteProtocolError as error:
        content = {"garbled": str(error), "base64": base64.b64encode(message.sealed).decode()}
    return {**about, "counter": message.counter, **logged, **content}


def _content(message: Message) -> dict[str, Any]:
    data = message.data
    content = {"base64": base64.b64encode(data).decode()} if isinstance(data, bytes) else {"data": data}
    named = {"principal": message.principal, "headers": message.headers}
    return content | {name: value for name, value in named.items() if value}
