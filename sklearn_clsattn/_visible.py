"""Text from elsewhere, made safe to show."""

import re

# Control characters, line and paragraph separators, marks of direction, surrogates, noncharacters.
_NOT_SHOWN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | end) for plane in range(17) for end in (0xFFFE, 0xFFFF))
    + "]"
)


def visible(text: str, *, keep_lines: bool = False) -> str:
    """Return a text that can be encoded and does not control a terminal or the text around it."""
    if text.isprintable():  # the usual case, checked fastest
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _NOT_SHOWN.sub(lambda found: _sign(found[0], keep_lines), text)


def _sign(character: str, keep_lines: bool) -> str:
    code = ord(character)
    if character in "\n\t\u2028\u2029":
        line = character if code < 0x20 else "\n"
        return line if keep_lines else " "
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"[U+{code:04X}]" if 0x2000 < code < 0x2070 else "\ufffd"
