"""The audit of dependencies tells vulnerable from clean, and neither from not having asked."""

from importlib.util import module_from_spec, spec_from_file_location

import pytest

from support.sources import ROOT

_spec = spec_from_file_location("audit", ROOT / "scripts" / "audit.py")
assert _spec is not None and _spec.loader is not None
audit = module_from_spec(_spec)
_spec.loader.exec_module(audit)

CLEAN = {"name": "a", "version": "1", "vulns": []}
BAD = {
    "name": "b",
    "version": "2",
    "vulns": [{"id": "CVE-1", "fix_versions": ["3"]}, {"id": "X-2", "fix_versions": []}],
}
SKIPPED = {"name": "c", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("packages", "code", "said"),
    [
        ([CLEAN, CLEAN], 0, "2 packages, no known vulnerabilities"),
        ([CLEAN, BAD], 1, "b 2: CVE-1, fixed in 3"),
        ([SKIPPED, BAD], 1, "b 2: CVE-1, fixed in 3"),
        ([CLEAN, SKIPPED], 3, "not audited: 1 of 2 packages are not known to the service, c for one"),
        ([], 3, "not audited: no packages"),
    ],
)
def test_verdicts(packages, code, said):
    found, lines = audit.judge({"dependencies": packages})
    assert (found, lines[0]) == (code, said)


def test_a_service_that_cannot_be_reached_is_one_line(tmp_path):
    tool = tmp_path / "pip-audit"
    tool.write_text("#!/bin/sh\necho 'Traceback' >&2\necho 'no route to host' >&2\nexit 1\n")
    tool.chmod(0o755)
    code, lines = audit.ask(tmp_path)
    assert code == 3 and lines == ["not audited: the service cannot be reached (no route to host)"]
