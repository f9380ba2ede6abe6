"""Capturing the beginning of a stream, up to the mark that ends it."""

from hypothesis import given
from hypothesis import strategies as st

from proctor.sandbox.capture import Capture

MARK = b"0123456789abcdef"
END = b"\n" + MARK + b":7;\n"


@given(output=st.binary(max_size=200), rest=st.binary(max_size=50), cuts=st.lists(st.integers(0, 300), max_size=6))
def test_the_mark_is_found_however_the_stream_is_cut(output: bytes, rest: bytes, cuts: list[int]) -> None:
    stream = output + END + rest
    capture, fed = Capture(MARK, 1000), 0
    for cut in [*sorted(min(cut, len(stream)) for cut in cuts), len(stream)]:
        done = capture.feed(stream[fed:cut])
        fed = cut
        if done:
            break
    assert (capture.output(), capture.status, capture.truncated) == (output, 7, False)
    assert capture.rest + stream[fed:] == rest


def test_only_the_cap_is_kept_of_a_long_stream_and_the_mark_is_still_found() -> None:
    capture = Capture(MARK, 10)
    for _ in range(1000):
        assert not capture.feed(b"x" * 1000)
    assert capture.feed(END)
    assert (capture.output(), capture.truncated, capture.status) == (b"x" * 10, True, 7)


def test_an_output_of_exactly_the_cap_is_not_truncated() -> None:
    capture = Capture(MARK, 10)
    assert capture.feed(b"x" * 10 + END)
    assert (capture.output(), capture.truncated) == (b"x" * 10, False)


def test_a_foreign_mark_is_output() -> None:
    capture = Capture(MARK, 100)
    assert not capture.feed(b"\n" + MARK[::-1] + b":0;\n")
    assert not capture.feed(b"\n" + MARK + b":none;\n")


def test_output_before_the_mark_comes_is_what_arrived() -> None:
    capture = Capture(MARK, 100)
    capture.feed(b"half a li")
    assert capture.output() == b"half a li"


def test_without_a_mark_everything_is_output() -> None:
    capture = Capture(None, 100)
    assert not capture.feed(END)
    assert capture.output() == END
