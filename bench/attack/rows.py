"""What an attack found, and the table of all of them."""

from dataclasses import dataclass, field

from cubecast.experiments.live_faults.recorded import Findings

KINDS = ("lost", "doubled", "disordered", "before_cause", "made_up")


@dataclass
class Row:
    name: str
    findings: Findings = field(default_factory=Findings)
    other: int = 0
    """Mistakes of other kinds; `notes` says which."""
    counts: str = ""
    """What was done, in numbers."""
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    is_allowed: bool = True

    @property
    def mistakes(self) -> int:
        return self.findings.mistakes + self.other

    def fault(self, text: str) -> None:
        self.other += 1
        self.notes.append(text)


def table(rows: list[Row]) -> str:
    mistaken = ("lost", "doubled", "order", "cause", "made up", "other")
    head = ("attack", "s", "published", "delivered", "gaps", "unnamed", *mistaken)
    lines = [head]
    for row in rows:
        found = row.findings
        mistakes = [str(getattr(found, kind)) for kind in KINDS]
        said = [*map(str, (found.published, found.delivered, found.gaps, found.unnamed)), *mistakes, str(row.other)]
        lines.append((row.name, f"{row.seconds:.0f}", *(said if row.is_allowed else ["–"] * len(said))))
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    text = [
        "  ".join(
            one.ljust(width) if not column else one.rjust(width)
            for column, (one, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
    return "\n".join([text[0], "-" * len(text[0]), *text[1:]])
