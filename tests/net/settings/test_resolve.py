"""Options over environment over file over defaults; whatever is wrong is said in one line that says where and what."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from cubecast.addresses import Address
from cubecast.errors import BadInput
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.fields import leaves, setting, table
from cubecast.net.settings.resolve import (
    HIDDEN,
    BadSettings,
    Sources,
    check_file,
    example,
    missing_files,
    reference,
    resolve,
    shown,
)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How long something is kept."""

    pattern: str
    age: float | None = setting(None, least=1, unit="seconds")


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Secrets."""

    cert: Path = setting(file=True)
    """The certificate."""
    password: str | None = setting(None, secret=True)
    """What opens it."""


@dataclass(frozen=True, kw_only=True)
class Store:
    """What is kept."""

    sync: Literal["always", "never"] = "always"
    """When it is written."""
    rules: tuple[Rule, ...] = ()
    """By pattern."""
    names: dict[str, Rule] = field(default_factory=dict)
    """By name."""
    size: int = setting(1 << 20, least=1, unit="bytes", reload=True)
    """How much."""

    def __post_init__(self) -> None:
        if self.sync == "never" and self.rules:
            raise BadInput("rules need sync")


@dataclass(frozen=True, kw_only=True)
class Example:
    port: int = setting(7, least=1, most=9)
    """A number."""
    ratio: float = 0.5
    """Another one."""
    on: bool = False
    """A choice."""
    many: tuple[Address, ...] = ()
    """Addresses."""
    keys: Keys | None = None
    store: Store = table(Store)


def made(file: Path | None = None, environment: dict[str, str] | None = None, **options: str) -> Example:
    return resolve(Example, sources(file, environment, **options)).config


def sources(file: Path | None = None, environment: dict[str, str] | None = None, **options: str) -> Sources:
    return Sources(file, environment or {}, {key: (f"--{key}", value) for key, value in options.items()})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "some.toml"


def test_nothing_given_is_the_defaults():
    assert made() == Example()


def test_options_win_over_environment_over_file(file: Path):
    file.write_text("port = 1\nratio = 1\non = true\n")
    environment = {"CUBECAST_PORT": "2", "CUBECAST_RATIO": "2.5", "PATH": "x", "CUBECAST_MANY": ""}
    resolved = resolve(Example, sources(file, environment, port="3"))
    assert resolved.config == Example(port=3, ratio=2.5, on=True)
    places = [resolved.place(key) for key in ("port", "ratio", "on", "many")]
    assert places == ["--port", "environment variable CUBECAST_RATIO", str(file), "default"]


def test_one_of_several_named_values_is_an_option_too():
    options = {
        "protocol": ("--protocol", "epto"),
        "parameters.period": ("--set parameters.period", "0.02"),
        "parameters.relays": ("--set parameters.relays", "1"),
    }
    found = resolve(NodeConfig, Sources(options=options)).config
    assert found.parameters == {"period": "0.02", "relays": "1"}
    wrong = {"parameters.colour": ("--set parameters.colour", "red")}
    with pytest.raises(BadInput, match="cubecast has no parameter 'colour'; it has window"):
        resolve(NodeConfig, Sources(options=wrong))


def test_tables_and_what_is_in_them(file: Path):
    file.write_text(
        'many = ["[::1]:80"]\n[store]\nsize = "1.5 KiB"\nrules = [{ pattern = "a.>", age = "2 min" }]\n'
        '[store.names.first]\npattern = "b"\n[keys]\ncert = "own.pem"\n'
    )
    config = made(file)
    assert config.many == (Address("::1", 80),)
    assert config.store == Store(size=1536, rules=(Rule(pattern="a.>", age=120.0),), names={"first": Rule(pattern="b")})
    assert config.keys == Keys(cert=file.parent / "own.pem"), "relative to the file"


def test_environment_reaches_into_tables():
    environment = {"CUBECAST_STORE__SIZE": "2 MiB", "CUBECAST_KEYS__CERT": "x.pem", "CUBECAST_MANY": "a:1, b:2"}
    config = made(None, environment)
    assert (config.store.size, config.keys) == (2 << 20, Keys(cert=Path("x.pem")))
    assert config.many == (Address("a", 1), Address("b", 2))


WRONG = {
    "not a number": ("port = 'x'", "port must be a whole number from 1 to 9, not 'x'"),
    "a truth is no number": ("port = true", "port must be a whole number from 1 to 9, not True"),
    "too large": ("port = 10", "port must be a whole number from 1 to 9, not 10"),
    "not finite": ("ratio = 'nan'", "ratio must be a number, not 'nan'"),
    "a number is no truth": ("on = 1", "on must be true or false, not 1"),
    "one instead of many": ("many = 'a:1'", "many must be a list, each of them an address HOST:PORT, not 'a:1'"),
    "no address": ("many = ['a']", "many 'a' is not an address; write HOST:PORT, for example 127.0.0.1:7400"),
    "misspelt": ("prot = 1", "unknown key prot; did you mean port?"),
    "misspelt table": ("[stor]\nsize = 1", "unknown key stor; did you mean store?"),
    "misspelt in a table": ("[store]\nsise = 1", "unknown key store.sise; did you mean store.size?"),
    "in no table": ("size = 1", "unknown key size; did you mean store.size?"),
    "nothing like it": ("qqqqqq = 1", "unknown key qqqqqq; known here are port, ratio, on, many, keys, store"),
    "nothing like it in there": ("[keys]\nzz = 1", "unknown key keys.zz; known in [keys] are cert, password"),
    "no table": ("store = 1", "store must be a table [store] with sync, rules, names, size, not 1"),
    "no such choice": ("store.sync = 'x'", """store.sync must be "always" or "never", not 'x'"""),
    "a unit nobody knows": (
        "store.size = '3 parsecs'",
        """store.size must be a number of bytes, at least 1 (or "64 MiB" and the like), not '3 parsecs'""",
    ),
    "missing": ("[keys]\npassword = 'p'", "keys.cert is missing; it must be a path"),
    "in a list of tables": ("store.rules = [{ age = 1 }]", "store.rules has no pattern, which must be a text"),
    "unknown in a list of tables": ("store.rules = [{ x = 1 }]", "store.rules has no 'x'; known are pattern, age"),
    "cannot go together": (
        "[store]\nsync = 'never'\nrules = [{ pattern = 'a' }]",
        "[store] rules need sync",
    ),
}


@pytest.mark.parametrize(("text", "reason"), WRONG.values(), ids=WRONG)
def test_wrong_values_are_named_with_their_file(file: Path, text: str, reason: str):
    file.write_text(text)
    with pytest.raises(BadInput) as caught:
        made(file)
    assert str(caught.value) == f"{file}: {reason}"


def test_variables_and_options_are_named_too():
    with pytest.raises(BadInput, match=r"^environment variable CUBECAST_PORT: port must be .*, not '0'$"):
        made(None, {"CUBECAST_PORT": "0"})
    with pytest.raises(
        BadInput, match=r"^unknown environment variable CUBECAST_STORE_SIZE; .* CUBECAST_STORE__SIZE\?$"
    ):
        made(None, {"CUBECAST_STORE_SIZE": "1"})
    with pytest.raises(BadInput, match=r"^--port: port must be .*, not 'x'$"):
        made(port="x")
    with pytest.raises(BadInput, match=r"^--prot: unknown key prot; did you mean port\?$"):
        made(prot="1")
    assert made(None, {"CUBECAST_CONFIG": "x", "CUBECAST_TOKEN": "y"}) == Example(), "these are no settings"


def test_all_problems_are_told(file: Path):
    file.write_text("port = 0\nprot = 1\non = 3\n")
    with pytest.raises(BadSettings, match="and 2 more") as caught:
        made(file)
    assert len(caught.value.problems) == 3
    assert check_file(Example, Sources(file)) == caught.value.problems


def test_files_that_cannot_be_read(file: Path):
    with pytest.raises(BadInput, match=f"cannot read {file}: No such file"):
        made(file)
    file.write_text("= 1")
    with pytest.raises(BadInput, match=f"{file} is not valid TOML: .*line 1"):
        made(file)
    file.write_bytes(b"\xff")
    with pytest.raises(BadInput, match="is not valid TOML"):
        made(file)


def test_named_files_must_be_there(file: Path):
    file.write_text("keys.cert = 'own.pem'\n")
    (problem,) = check_file(Example, Sources(file))
    own = file.parent / "own.pem"
    assert problem == f"{file}: keys.cert names {own}, which cannot be read: No such file or directory"
    own.write_text("x")
    assert check_file(Example, Sources(file)) == []
    assert missing_files(Example, resolve(Example, sources())) == []


def test_secrets_are_neither_shown_nor_told(file: Path):
    file.write_text("keys = { cert = 'c', password = 'sesame' }\n")
    rows = shown(Example, resolve(Example, sources(file)))
    assert ("keys.password", HIDDEN, str(file)) in rows
    assert "sesame" not in str(rows)
    file.write_text("keys = { cert = 'c', password = ['sesame'] }\n")
    with pytest.raises(BadInput, match=r"keys.password must be a text$"):
        made(file)


def test_the_example_of_any_settings_parses_to_the_defaults(file: Path):
    for kind in (Example, NodeConfig):
        file.write_text(example(kind, "Everything."))
        assert resolve(kind, sources(file)).config == kind()


def test_every_setting_of_a_node_is_documented():
    assert not [key for key, leaf in leaves(NodeConfig).items() if not leaf.text]
    assert all(f"`{key}`" in reference(NodeConfig) for key in leaves(NodeConfig))


def test_a_cluster_file_is_right_for_each_of_its_nodes(file: Path):
    file.write_text('dimension = 1\ninsecure = true\npeers = { 0 = "a:1", 1 = "b:1" }\n')
    assert check_file(NodeConfig, Sources(file)) == []
    file.write_text('dimension = 1\ninsecure = true\npeers = { 0 = "a:1", 2 = "b:1" }\n')
    (problem,) = check_file(NodeConfig, Sources(file))
    assert problem == f"{file}: id 2 does not exist in a cube of 2; raise the dimension"
    file.write_text('peers = { x = "a:1" }\n')
    assert "peers must be" in check_file(NodeConfig, Sources(file))[0]
