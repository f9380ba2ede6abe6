"""What the YAML parser complains of, in plain words, at the line where the mistake probably is."""

import yaml

SYNTAX = (
    ("character '\\t'", "a tab stands where only spaces may; indent with spaces"),
    ("quoted scalar", "a quote is opened here and never closed"),
    ("flow sequence", "a `[` is opened here and never closed, or a comma is missing"),
    ("flow mapping", "a `{` is opened here and never closed, or a comma is missing"),
    ("mapping values are not allowed", "a second `:`, or wrong indentation; put quotes around a text that holds `: `"),
    ("could not find expected ':'", "no `:` after the field's name"),
    ("block", "the indentation does not fit the lines above"),
    ("another document", "a second document begins after `---`; keep one to a file"),
    ("undefined alias", "a `*` refers to a name that no `&` gives; put quotes around a text that begins with `*`"),
    ("cannot start any token", "this character begins no value; put quotes around the text"),
)
"""(words of the YAML parser, what they mean)"""
LOOKALIKES = {
    "\u00a0": "a no-break space stands where a plain one must (U+00A0)",
    "\u3000": "a wide space stands where a plain one must (U+3000)",
    "\uff1a": "a wide colon stands where a plain one must (U+FF1A)",
    "\u201c": "curly quotes stand where plain ones must (U+201C)",
    "\u201d": "curly quotes stand where plain ones must (U+201D)",
}
"""Characters that look like those of YAML, and what to say of them."""


def syntax_problem(error: yaml.MarkedYAMLError, text: str) -> tuple[int, str]:
    """The line, from 1, and what is wrong in it."""
    told = f"{error.context or ''} {error.problem or ''}"
    words = next((meaning for parsed, meaning in SYNTAX if parsed in told), f"{error.problem or error.context}")
    marks = (
        (error.context_mark, error.problem_mark)
        if "opened here" in words or "simple key" in told
        else (error.problem_mark, error.context_mark)
    )
    line = next((mark.line for mark in marks if mark), 0)
    lines = text.splitlines()
    if "mapping values" in told and line and not _names_a_field(lines[line - 1]):
        line, words = line - 1, "no `:` after the field's name"
    near = [n for n in range(max(0, line - 2), min(len(lines), line + 2)) if any(c in lines[n] for c in LOOKALIKES)]
    if near:
        line = near[0]
        words = "; ".join(meaning for character, meaning in LOOKALIKES.items() if character in lines[line])
    where = "" if near else "; fix it on or just before this line"
    return line + 1, f"not YAML: {words}{where}"


def _names_a_field(line: str) -> bool:
    return ":" in line or not line.strip() or line.lstrip().startswith(("-", "#"))
