"""The action grammar, row by row (specification sections 3.2 and 8), and as recorded of the published code."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.operating_system.reply import MAX_ANSWER_BYTES, Bash, Commit, Invalid, parse
from tests.support import SHARED_DATA

FORMAT, ACTION = Invalid("invalid_format"), Invalid("invalid_action")

REPLIES: list[tuple[str, Bash | Commit | Invalid]] = [
    ("Think: go\n\nAct: bash\n\n```bash\nls /\n```", Bash("ls /")),
    ("Act: bash\n```bash\nls\n```\ntext\n```bash\npwd\n```", Bash("ls\n\npwd")),
    ("Act: bash\n```bash\nls\n\ncd /\n```", Bash("ls\n\ncd /")),
    ("Act: bash\n```bash\n  indented\n```", Bash("  indented")),
    ("```bash\nls\n```\nAct: bash", Bash("ls")),
    ("Act: bash\n```sh\nls\n```", Bash("")),
    ("Act: bash\n```\nls\n```", Bash("")),
    ("Act: bash\n```bash -x\nls\n```", Bash("")),
    ("Act: bash\n```Bash\nls\n```", Bash("")),
    ("Act: bash", Bash("")),
    ("Act: bash\n```bash\nls", Bash("")),
    ("Act: bash\n```bash\nls ```", Bash("")),
    ("Act: bash\n```bash\n```", Bash("")),
    ("Act: bash ```bash\nls\n```", Bash("ls")),
    ("Act: bash\nCode: ```bash\nls\n``` and so on", Bash("ls")),
    ("Act: bash\n````bash\nls\n````", Bash("ls")),
    ("Act: bash\n```bash\ncat <<E\n  ```\nE\n```", Bash("cat <<E\n  ```\nE")),
    ("Act: bash\n  ```bash\n  ls\n  ```", Bash("  ls")),
    ("Act: bash\n```bash \nls\n```", Bash("ls")),
    ("Act: bash\r\n```bash\r\nls\r\npwd\r\n```\r\n", Bash("ls\npwd")),
    ("Act: bash\n  ```bash\nls```\n  ```bash\npwd```", Bash("")),
    ("Act: BASH\n```bash\nls\n```", Bash("ls")),
    ("Act:bash\n```bash\nls\n```", Bash("ls")),
    ("Act:\n\nbash\n```bash\nls\n```", Bash("ls")),
    ("Act: bash please\n```bash\nls\n```", Bash("ls")),
    ("Act: finish", Commit(None)),
    ("Act: Finish.", Commit(None)),
    ("Think: done\nAct: finish\n", Commit(None)),
    ("Act: answer(220)", Commit("220")),
    ("Act: Answer (a b)", Commit("a b")),
    ("Act: answer()", Commit("")),
    ("Act: answer(f(x) = (1))", Commit("f(x) = (1)")),
    ("Act: answer( x ) trailing", Commit(" x ")),
    ("Act: answer(1)\nAct: answer(2)", Commit("2")),
    ("Act: finish\nAct: answer(2)", Commit("2")),
    ("Act: answer(3)\nAct: answer 5", Commit("3")),
    ("Act: answer(3)\nAct: dance", Commit("3")),
    ("Act: bash\n```bash\nls\n```\nAct: answer(x", Bash("ls")),
    ("Act: answer 5", ACTION),
    ("Act: answer(5", ACTION),
    ("Act: answer 5)", ACTION),
    ("Act: answer)5(", Commit("")),
    ("Act: dance", ACTION),
    ("Act: answer(a\0b)", ACTION),
    (f"Act: answer({'x' * (1 << 20)})", ACTION),
    ("", FORMAT),
    ("I think it is 5.", FORMAT),
    ("Act:", FORMAT),
    ("act: answer(5)", FORMAT),
    ("```bash\nls\n```", FORMAT),
]


@pytest.mark.parametrize(("reply", "action"), REPLIES, ids=[repr(reply[:40]) for reply, _ in REPLIES])
def test_a_reply_means(reply: str, action: Bash | Commit | Invalid) -> None:
    assert parse(reply) == action


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("**Act:** bash\n\n```bash\nls\n```", Bash("ls")),
        ("**Act**: bash\n\n```bash\nls\n```", Bash("ls")),
        ("Act: **bash**\n\n```bash\nls\n```", Bash("ls")),
        ("**ACT: `bash`**\n\n```bash\nls\n```", Bash("ls")),
        ("**Think:** so\n**Act:** finish", Commit(None)),
        ("__Act:__ answer(5)", Commit("5")),
        ("**Act:** **answer(a*b)**", Commit("a*b")),
        ("act: answer(5)", Commit("5")),
        ("**Act:** bash, no:\n**Act:** finish", Commit(None)),
        ("**Act:** jump", ACTION),
        ("React: answer(5)", FORMAT),
        ("Think: I act now.", FORMAT),
    ],
)
def test_strict_takes_what_is_set_around_a_mark(reply: str, action: Bash | Commit | Invalid) -> None:
    assert parse(reply, lenient=True) == action
    assert isinstance(parse(reply), Invalid)


@pytest.mark.parametrize(("reply", "action"), REPLIES, ids=[repr(reply[:40]) for reply, _ in REPLIES])
def test_strict_reads_as_published_whatever_can_be_read_so(reply: str, action: Bash | Commit | Invalid) -> None:
    assert parse(reply, lenient=True) == action or isinstance(action, Invalid) or action == Bash("")


@pytest.mark.parametrize(
    "block",
    [
        "```sh\nls\n```",
        "```\nls\n```",
        "```Bash\nls\n```",
        "```bash\nls",
        "```bash\nls ```",
        "~~~bash\nls\n~~~",
        "```ls```",
    ],
)
def test_in_strict_code_is_the_same_in_any_block(block: str) -> None:
    found = parse(f"Act: bash\n\n{block}", lenient=True)
    assert isinstance(found, Bash)
    assert found.code.strip() == "ls"


def test_in_strict_an_answer_may_go_over_lines() -> None:
    assert parse("Act: answer(\n42\n)", lenient=True) == Commit("42")
    assert parse("Act: answer(\n42\n)") == ACTION


def test_the_longest_answer_is_still_one() -> None:
    assert parse(f"Act: answer({'x' * MAX_ANSWER_BYTES})") == Commit("x" * MAX_ANSWER_BYTES)


@given(st.text())
def test_no_reply_breaks_the_parser(reply: str) -> None:
    assert isinstance(parse(f"Act: {reply}"), Bash | Commit | Invalid)
    assert parse(reply + "\nAct: finish") == Commit(None)


def test_an_answer_of_lone_surrogates_is_taken() -> None:
    assert parse("Act: answer(\ud800)") == Commit("\ud800")


KINDER = {
    "line ends of Windows": [14, 21, 73, 123, 206, 260, 354, 398, 410, 443, 487, 495, 510, 567],
    "an indented closing fence": [30, 176, 377, 384, 409, 555],
    "a blank behind the fence": [134, 237, 281, 318, 444, 533, 598],
    "line ends of Windows, and an indented closing fence": [163, 323, 415],
}
"""Lines of the recorded replies in which only we find a block; the published code runs the empty command."""


@pytest.mark.shared
def test_every_recorded_reply_means_what_the_published_code_says_but_for_kinder_fences() -> None:
    lines = (SHARED_DATA / "os/published_replies.jsonl").read_text(encoding="utf-8").splitlines()
    others = []
    for number, line in enumerate(lines, 1):
        recorded = json.loads(line)
        action, published = parse(recorded["reply"]), recorded["published"]
        match published["action"]:
            case "bash":
                if action != Bash(published["content"]):
                    assert published["content"] == ""
                    assert isinstance(action, Bash)
                    others.append(number)
            case "commit":
                assert action == Commit(published["content"]), number
            case _:
                assert isinstance(action, Invalid), number
    assert len(lines) == 600
    assert others == sorted(number for numbers in KINDER.values() for number in numbers)
