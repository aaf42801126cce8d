"""A policy as people write it.

[anonymous]                      # without this table nobody gets in without proof
subscribe = ["public.>"]

[principals.alice]
tokens = ["sha256:…"]            # from `cubecast token new alice`
keys = ["ed25519:…"]             # from `cubecast token key alice`
certificate = true               # a client certificate for alice is proof enough
publish = ["orders.*", "_inbox.*"]
subscribe = ["orders.>", "_inbox.*"]
admin = [">"]                    # status, held; whatever looks after the node
"""

from pathlib import Path
from typing import Any

from cubecast.errors import BadInput
from cubecast.net.security.keys import read_public
from cubecast.net.security.policy import Known, Policy
from cubecast.net.security.principal import Action, Principal
from cubecast.net.security.tokens import check_digest, check_name
from cubecast.net.settings.toml_file import read_toml

ANONYMOUS = "anonymous"
PROOFS = ("tokens", "keys", "certificate")


def load_policy(path: Path, cluster: str) -> Policy:
    """BadInput names the file and what is wrong with it; nothing is granted by a file that is wrong anywhere."""
    raw = read_toml(path)
    try:
        return parse_policy(raw, cluster)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def parse_policy(raw: dict[str, Any], cluster: str) -> Policy:
    _check_known("the policy", raw, (ANONYMOUS, "principals"))
    anonymous = None
    if ANONYMOUS in raw:
        table = _table(ANONYMOUS, raw[ANONYMOUS])
        _check_known(ANONYMOUS, table, tuple(Action))
        anonymous = Principal(ANONYMOUS, _grants(ANONYMOUS, table))
    principals = _table("principals", raw.get("principals", {}))
    return Policy(cluster, {name: _known(name, table) for name, table in principals.items()}, anonymous)


def _known(name: str, table: Any) -> Known:
    if check_name(name) == ANONYMOUS:
        raise BadInput(f"{ANONYMOUS!r} stands for those who show nothing and cannot be a principal's name")
    table = _table(name, table)
    _check_known(name, table, (*Action, *PROOFS))
    certificate = table.get("certificate", False)
    if not isinstance(certificate, bool):
        raise BadInput(f"{name}: certificate is true or false, not {certificate!r}")
    tokens = tuple(check_digest(text) for text in _texts(name, "tokens", table))
    keys = tuple(read_public(text) for text in _texts(name, "keys", table))
    return Known(Principal(name, _grants(name, table)), tokens, keys, certificate)


def _grants(name: str, table: dict[str, Any]) -> dict[Action, tuple[str, ...]]:
    return {action: _texts(name, action, table) for action in Action}


def _texts(name: str, key: str, table: dict[str, Any]) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadInput(f"{name}: {key} is a list of texts, not {value!r}")
    return tuple(value)


def _table(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(f"{name} is a table, not {value!r}")
    return value


def _check_known(name: str, table: dict[str, Any], known: tuple[str, ...]) -> None:
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise BadInput(f"{name}: unknown settings {', '.join(unknown)}; known are {', '.join(known)}")
