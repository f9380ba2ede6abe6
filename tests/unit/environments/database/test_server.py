"""Addresses of running servers."""

import pytest

from environments.database.engines.server import RunningServer, ServerAddress, parse_url


def test_a_url_gives_user_host_port_and_socket() -> None:
    assert parse_url("mysql://me@db.example:3307/", "p@ss") == ServerAddress("me", "p@ss", None, "db.example", 3307)
    assert parse_url("mariadb://root@localhost/?unix_socket=/run/my.sock", None) == ServerAddress(
        "root", "", "/run/my.sock"
    )


@pytest.mark.parametrize(
    "url", ["", "mysql://db/", "mysql://me:hunter2@db/", "http://me:hunter2@db/", "mysql://me:hunter2@db:port/"]
)
def test_a_wrong_url_is_explained_without_repeating_it(url: str) -> None:
    with pytest.raises(ValueError, match="mysql://user@host:3306/") as caught:
        parse_url(url, None)
    assert "hunter2" not in str(caught.value)


def test_an_address_never_prints_its_password() -> None:
    assert "hunter2" not in repr(ServerAddress("me", "hunter2"))


async def test_a_running_server_stays_where_it_is() -> None:
    server = RunningServer(ServerAddress("me"))
    await server.start()
    await server.stop()
    assert await server.address() == ServerAddress("me")
