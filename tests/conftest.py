"""Options of the whole suite, its one Spark session and its one browser: starting one costs seconds."""

import logging
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A slow machine is no failure: neither examples nor their making is timed. The everyday suite tries the same examples
# every time, so that what fails was broken by the change at hand; `make test-all` looks for new ones.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("everyday", UNTIMED, derandomize=True)
settings.register_profile("exploring", UNTIMED, print_blob=True)
settings.load_profile("everyday")

LONGEST_SLOW_TEST = 3600

TEST_OPTIONS = (
    ("spark.driver.memory", "1g"),
    ("spark.sql.shuffle.partitions", "2"),
    ("spark.default.parallelism", "2"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what the code does now into scenario scripts and golden digests, instead of comparing",
    )


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:  # noqa: F821 - PySpark is imported only where a test asks for it
    from cubecast.pipeline.session import LIGHT_JVM, spark_session

    session = spark_session("local[2,4]", TEST_OPTIONS, LIGHT_JVM)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def chromium() -> Iterator["Chromium"]:  # noqa: F821 - only where a test asks for it
    from support.chromium import Chromium

    browser = Chromium()
    yield browser
    browser.stop()


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A test that is a node's process for a while arranges what that process writes; the next one is somebody else."""
    ours = logging.getLogger("cubecast")
    handlers, propagate, level = list(ours.handlers), ours.propagate, ours.level
    yield
    ours.handlers[:], ours.propagate = handlers, propagate
    ours.setLevel(level)


@pytest.hookimpl(tryfirst=True)  # before the workers look at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that uses the session is a Spark test, and all of them run in one worker; nobody has to remember that.

    The same holds for the browser.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(LONGEST_SLOW_TEST))


@pytest.fixture
def spark_home(tmp_path: Path) -> str:
    """The wheel's own folder seen through links, because workers of a cluster write beneath SPARK_HOME."""
    home = tmp_path / "spark"
    home.mkdir()
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    for entry in Path(found.origin).parent.iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    return str(home)
