"""Which requests may come from a web page of another site."""

import pytest

from proctor.http.server import rejection_reason


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({}, ""),
        ({"host": "127.0.0.1:8000"}, ""),
        ({"host": "localhost"}, ""),
        ({"host": "LocalHost:8000"}, ""),
        ({"host": "[::1]:8000"}, ""),
        ({"host": "127.8.8.8"}, ""),
        ({"host": "eval.example:8000"}, ""),
        ({"host": "localhost:8000", "origin": "http://localhost:8000", "sec-fetch-site": "same-origin"}, ""),
        ({"host": "localhost:8000", "sec-fetch-site": "none"}, ""),
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
        ({"host": "x" * 10_000}, "Host: xxx"),
    ],
)
def test_a_web_page_elsewhere_is_told_by_its_headers(headers: dict[str, str], named: str) -> None:
    encoded = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    cause = rejection_reason(encoded, announced="eval.example") or ""
    assert (bool(cause), cause[: len(named)]) == (bool(named), named)
    assert len(cause) < 200, "no more than the beginning of a header is repeated"


def test_without_an_announced_host_the_loopback_ones_are_all() -> None:
    assert rejection_reason({b"host": b"localhost"}) is None
    assert rejection_reason({b"host": b"eval.example"}) is not None
