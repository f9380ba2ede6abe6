"""Patterns of texts in users' files, each with what it asks for in words."""

from collections.abc import Mapping

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
CONTROLLER = r"^(local|https?://[^/\s@]+(/\S*)?)$"

WORDS: Mapping[str, str] = {
    NAME: "must be 1 to 64 letters, digits, dots, dashes or underscores, and begin with a letter or digit",
    VARIABLE: "must be the NAME of an environment variable: letters, digits and underscores, no digit first",
    CONTROLLER: "must be `local`, or a URL such as http://127.0.0.1:8700",
}
