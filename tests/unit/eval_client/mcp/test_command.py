"""The words of a command, and what stands in braces in them."""

import pytest

from eval_client.mcp.command import check_command, filled
from proctor.config.problems import FieldError


@pytest.mark.parametrize(
    ("word", "becomes"), [("${{HOME}}/{url}", "${HOME}/u"), ('{"a":{"b":"{url}"}}', '{"a":{"b":"u"}}')]
)
def test_two_braces_are_one(word: str, becomes: str) -> None:
    check_command(["agent", word])
    assert filled([word], {"url": "u"}) == [becomes]


def test_what_is_in_two_braces_names_no_url() -> None:
    with pytest.raises(FieldError, match="no word holds"):
        check_command(["agent", "{{url}}"])
    with pytest.raises(FieldError, match=r"write \{\{HOME\}\}"):
        check_command(["agent", "${HOME}", "{url}"])
