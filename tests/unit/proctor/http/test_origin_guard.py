"""Which requests may come from a web page of another site."""

import pytest

from proctor.http.origin_guard import rejection_reason


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "127.0.0.1:8000"},
        {"host": "localhost"},
        {"host": "LocalHost:8000"},
        {"host": "[::1]:8000"},
        {"host": "127.8.8.8"},
        {"host": "eval.example:8000"},
        {"host": "localhost:8000", "origin": "http://localhost:8000", "sec-fetch-site": "same-origin"},
        {"host": "localhost:8000", "sec-fetch-site": "none"},
    ],
)
def test_programs_and_the_servers_own_address_are_fine(headers: dict[str, str]) -> None:
    assert rejection_reason(encoded(headers), announced="eval.example") is None


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({"host": "rebound.example:8000"}, "Host: rebound.example:8000 "),
        ({"host": "127.0.0.1.rebound.example"}, "Host: "),
        ({"host": "localhost.rebound.example"}, "Host: "),
        ({"host": "not-eval.example"}, "Host: "),
        ({"host": "0.0.0.0:8000"}, "Host: "),
        ({"host": "192.168.1.7"}, "Host: "),
        ({"host": ""}, "Host: "),
        ({"host": "[::1"}, "Host: "),
        ({"host": "\xff"}, "Host: "),
        ({"host": "localhost:8000", "origin": "http://page.example"}, "Origin: http://page.example "),
        ({"host": "localhost:8000", "origin": "http://localhost:3000"}, "Origin: "),
        ({"host": "localhost:8000", "origin": "null"}, "Origin: null "),
        ({"origin": "null"}, "Origin: null "),
        ({"host": "localhost:8000", "sec-fetch-site": "cross-site"}, "Sec-Fetch-Site: cross-site "),
        ({"host": "localhost:8000", "sec-fetch-site": "same-site"}, "Sec-Fetch-Site: same-site "),
    ],
)
def test_a_web_page_elsewhere_is_told_by_its_headers(headers: dict[str, str], named: str) -> None:
    cause = rejection_reason(encoded(headers), announced="eval.example")
    assert cause is not None
    assert cause.startswith(named)


def test_without_an_announced_host_the_loopback_ones_are_all() -> None:
    assert rejection_reason({b"host": b"localhost"}) is None
    assert rejection_reason({b"host": b"eval.example"}) is not None


def test_a_refusal_repeats_no_more_than_the_beginning_of_a_header() -> None:
    assert len(rejection_reason({b"host": b"x" * 10_000}) or "") < 200


def encoded(headers: dict[str, str]) -> dict[bytes, bytes]:
    return {name.encode(): value.encode("latin-1") for name, value in headers.items()}
