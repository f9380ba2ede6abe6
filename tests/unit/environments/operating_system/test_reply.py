"""What of a reply is done, and what the agent is told of an output (specification section 3.3)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.operating_system.observation import EMPTY, HEAD, TRUNCATED, render, text
from environments.operating_system.reply import MAX_ANSWER_BYTES, Bash, Commit, Invalid, parse
from proctor.sandbox.shell import CommandResult
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


def shown(output: bytes, *, timed_out: bool = False, restarted: bool = False) -> str:
    return render(CommandResult(output=output, status=0, timed_out=timed_out, restarted=restarted), 30.0)


def test_an_output_follows_its_heading_and_a_blank_line() -> None:
    assert shown(b"a\nb\n") == "The output of the OS:\n\na\nb"


@pytest.mark.parametrize("output", [b"", b"\n", b"\n\n", b"\x1b[0m\n"])
def test_no_output_says_so(output: bytes) -> None:
    assert shown(output) == "The output of the OS is empty."


def test_801_characters_are_cut_to_780_and_800_are_not() -> None:
    assert shown(b"x" * 800) == HEAD + "x" * 800
    assert shown(b"x" * 801) == HEAD + "x" * 780 + "\n" + TRUNCATED


def test_characters_are_counted_and_not_bytes() -> None:
    assert shown(("ä" * 800).encode()) == HEAD + "ä" * 800


def test_trailing_newlines_do_not_count() -> None:
    assert shown(b"x" * 800 + b"\n") == HEAD + "x" * 800


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert shown(b"a\xffb") == HEAD + "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize(
    "escaped",
    [
        b"\x1b[1;31mred\x1b[0m",
        b"\x1b]0;title\x07red",
        b"\x1b]8;;http://x\x1b\\red\x1b]8;;\x1b\\",
        b"\x1b(Bred",
        b"re\x1b[?25ld",
    ],
)
def test_escape_sequences_are_removed(escaped: bytes) -> None:
    assert text(escaped) == "red"


def test_an_interrupted_command_is_told_with_its_limit_even_when_the_output_was_cut() -> None:
    assert shown(b"x" * 900, timed_out=True).endswith(
        f"{TRUNCATED}\n[the command was interrupted after the time limit of 30 s]"
    )


def test_a_restarted_shell_is_told() -> None:
    assert shown(b"", restarted=True) == f"{EMPTY}\n[the shell has ended; a new one was started in /]"
