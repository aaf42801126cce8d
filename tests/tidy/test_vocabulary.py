"""One word for one thing: class names that several files share, and sentences that name no actor, only become fewer.

docs/vocabulary.md says which word is meant. A number below is lowered when the real one has fallen.
"""

import ast
import re
from collections import defaultdict

import pytest

from support.sources import PACKAGE, ROOT, modules

SHARED = """
Action Advertise Aggregation Alive Attach Beginning BrokerParameters Buffer Continuity Copy Deliver Deliveries
Delivery Dropped Enter Entry Event Expelled Finding Flood Gap Given Gone Happening Header Held Hello Holding Host Kept
Ledger Limits Link Log Lost Measured Member Members Membership Message Node Outcome Overlay Pause Place Point
Population Publish Pull Reached Reader Received Record Recorder Report Results Rules Run Shape Size Stable Standing
Start Store Subscribe Subscription Suspicion Tables Talker Term Test Timer Topic Unadvertise Unsubscribe View Wanted
Watch Wave Welcome Window World
"""
"""Names of classes that more than one file has. A new one says whose it is: not `Store` but `SweepStore`."""
MOST = {
    ("src", "whoever"): 16,
    ("src", "somebody"): 30,
    ("src", "nobody"): 163,
    ("docs", "whoever"): 1,
    ("docs", "somebody"): 0,
    ("docs", "nobody"): 36,
}
METAPHORS = ("sparing", "handover", "shelf", "crew", "door", "mending")
"""What stood for a cache, a callback, a store of batches, member processes, a listener, repair."""
ACTORLESS = ["whoever", "somebody", "nobody"]


def test_class_names_say_what_they_mean():
    places = defaultdict(list)
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module.name)
    shared = {name for name, found in places.items() if len(found) > 1}
    allowed = set(SHARED.split())
    assert shared <= allowed, {name: places[name] for name in shared - allowed}
    assert allowed <= shared, f"no longer shared, so no longer allowed: {sorted(allowed - shared)}"


@pytest.mark.parametrize(("top", "word"), [(top, word) for top in ("src", "docs") for word in ACTORLESS])
def test_sentences_name_the_actor(top: str, word: str):
    root, suffix = (PACKAGE, "*.py") if top == "src" else (ROOT / "docs", "*.md")
    texts = [path.read_text() for path in root.rglob(suffix) if path.name != "vocabulary.md"]
    count = sum(len(re.findall(rf"\b{word}\b", text, re.IGNORECASE)) for text in texts)
    assert count <= MOST[top, word], f"{count} times in {top}: say who it is (the driver, the subscriber, the operator)"


@pytest.mark.parametrize("word", METAPHORS)
def test_things_have_the_trades_word(word: str):
    places = [*PACKAGE.rglob("*.py"), *(path for path in (ROOT / "docs").rglob("*.md") if path.name != "vocabulary.md")]
    found = re.compile(rf"(?<![a-z]){word}s?(?![a-z])", re.IGNORECASE)
    wrong = [path for path in places if found.search(path.read_text())]
    assert not wrong, f"{word}: {wrong}"
