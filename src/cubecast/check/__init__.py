"""The reference checker: judges a trace by the predicates of docs/verification.md, knowing nothing but the trace."""

from cubecast.check.checker import check_directory, check_trace
from cubecast.check.verdict import Report, Verdict, Violation

__all__ = ["Report", "Verdict", "Violation", "check_directory", "check_trace"]
