"""What people see, by rich, which nodes and clients that print plain lines do without."""

import os
from typing import Any

from rich.console import Console
from rich.text import Text

from cubecast.escaping import visible_lines

WIDE = 500
"""Columns of what is no terminal."""


class Screen(Console):
    """Text is shown as it is: nothing in it is markup, for it may be a stranger's. Nor can it steer a terminal:
    there it is spelled out before it is laid out. In files and pipes nothing is cut or folded."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = WIDE

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible_lines(text) if self.is_terminal else text, **options)


output = Screen()
errors = Screen(stderr=True)
