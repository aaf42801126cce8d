"""Text of others on a screen or in a log: what would steer a terminal is spelled out, what people write is not."""

import json
import unicodedata

import pytest

from cubecast.escaping import visible, visible_json, visible_lines

SPELLED = {
    "\x1b[31mred": "\\x1b[31mred",
    "\x9b31mred": "\\x9b31mred",
    "rub\x7fout\x08": "rub\\x7fout\\x08",
    "two\r\nlines": "two\\r\\nlines",
    "a\u2028b\u2029c": "a\\u2028b\\u2029c",
    "exe.\u202egpj": "exe.\\u202egpj",
    "\u2066x\u2069": "\\u2066x\\u2069",
    "half\ud800": "half\\ud800",
}


@pytest.mark.parametrize("text", SPELLED)
def test_what_steers_a_terminal_is_spelled_out(text: str):
    assert visible(text) == SPELLED[text]


@pytest.mark.parametrize("text", ["", "a\tb", "Grüße, שלום, 你好", "👩\u200d🚀", "C:\\x1b", "a\u00a0b"])
def test_what_people_write_stays(text: str):
    assert visible(text) == visible_lines(text) == text


def test_every_control_character_is_spelled_out():
    controls = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in ("Cc", "Zl", "Zp", "Cs")]
    assert len(controls) > 65
    assert {one for one in controls if visible(one) == one} == {"\t"}
    assert {one for one in controls if visible_lines(one) == one} == {"\t", "\n"}


def test_json_says_the_same_as_before():
    said = {"\x9b": "\x7f \u202e", "list": ["a\nb", "ü"]}
    shown = visible_json(json.dumps(said, ensure_ascii=False, indent=2))
    assert json.loads(shown) == said
    assert visible_lines(shown) == shown
