"""The address that a worker announces is the one by which its controller reaches it."""

import socket

import pytest

from task_server.worker.advertise import address_towards, reached_by


@pytest.mark.parametrize(
    ("controller", "family", "address"),
    [
        ("http://127.0.0.1:8000", socket.AF_INET, "127.0.0.1"),
        ("https://127.0.0.1", socket.AF_INET, "127.0.0.1"),
        ("http://localhost:8000/under/a/path", socket.AF_INET, "127.0.0.1"),
        ("http://[::1]:8000", socket.AF_INET6, "::1"),
    ],
)
def test_the_address_is_the_one_on_the_way(controller: str, family: socket.AddressFamily, address: str) -> None:
    assert address_towards(controller, family) == address


def test_a_name_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(socket.gaierror):
        address_towards("http://nobody.invalid:8000", socket.AF_INET)


def test_who_listens_at_all_addresses_announces_the_one_on_the_way_to_the_controller() -> None:
    assert reached_by("0.0.0.0", "http://127.0.0.1:1") == "127.0.0.1"
    assert reached_by("::", "http://[::1]:1") == "::1"


def test_who_listens_at_one_address_announces_that() -> None:
    assert reached_by("10.1.2.3", "http://127.0.0.1:1") == "10.1.2.3"


def test_a_lone_worker_announces_the_machine_by_name() -> None:
    assert reached_by("0.0.0.0", "") == socket.gethostname()
