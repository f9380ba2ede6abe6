"""MySQL-like servers: one that runs already, or a private mariadbd (see `private_server.py`)."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

PASSWORD_VARIABLE = "PROCTOR_DB_PASSWORD"


@dataclass(frozen=True)
class ServerAddress:
    """How to reach a server as its administrator; a private server gets a new address with every start."""

    user: str
    password: str = field(repr=False, default="")
    socket: str | None = None
    host: str = "localhost"
    port: int = 3306


class Server(ABC):
    """A server that is ready whenever its address is asked for."""

    private: ClassVar[bool]
    """True where only this process uses the server."""

    @abstractmethod
    async def start(self) -> None:
        """Makes the server ready. Raises EnvironmentFault."""

    @abstractmethod
    async def address(self) -> ServerAddress:
        """The server's current address; a private server that died is started again first. Raises EnvironmentFault."""

    async def end_if_hung(self) -> None:
        """Ends a private server that answers no new connection, so that the next address is another's."""
        return

    @abstractmethod
    async def stop(self) -> None:
        """Releases the server's resources."""


class RunningServer(Server):
    """A MariaDB or MySQL server that Proctor neither starts nor stops."""

    private = False

    def __init__(self, address: ServerAddress) -> None:
        self._address = address

    async def start(self) -> None:
        """Does nothing: the server runs already."""

    async def address(self) -> ServerAddress:
        return self._address

    async def stop(self) -> None:
        """Does nothing: the server is not ours."""


def parse_url(url: str, password: str | None) -> ServerAddress:
    """The address in `mysql://user@host[:port]/[?unix_socket=path]`, with a password from elsewhere.

    Raises ValueError, also where the URL contains a password, which plans and stores must not. The message never
    quotes the URL.
    """
    form = f"write it as mysql://user@host:3306/ and the password into {PASSWORD_VARIABLE}"
    try:
        parts = urlsplit(url)
        port = parts.port or 3306
    except ValueError as error:
        raise ValueError(f"server: not a server URL; {form}") from error
    if parts.scheme not in ("mysql", "mariadb") or not parts.hostname or not parts.username:
        raise ValueError(f"server: not a server URL with scheme, user and host; {form}")
    if parts.password is not None:
        raise ValueError(f"server: the URL must not contain a password; {form}")
    return ServerAddress(
        user=unquote(parts.username),
        password=password or "",
        socket=parse_qs(parts.query).get("unix_socket", [None])[0],
        host=parts.hostname,
        port=port,
    )
