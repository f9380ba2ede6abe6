"""Where the MySQL-like server is: one that runs already, or a private mariadbd (see `private_server.py`)."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

PASSWORD_VARIABLE = "PROCTOR_DB_PASSWORD"


@dataclass(frozen=True)
class ServerAddress:
    """How to reach a server as its administrator; a private server that was started again has another one."""

    user: str
    password: str = field(repr=False, default="")
    socket: str | None = None
    host: str = "localhost"
    port: int = 3306


class Server(ABC):
    """A server that is ready whenever its address is asked for."""

    private: ClassVar[bool]
    """True where nobody but this process uses the server."""

    @abstractmethod
    async def start(self) -> None:
        """Make it ready. Raises EnvironmentFault."""

    @abstractmethod
    async def address(self) -> ServerAddress:
        """Where the server is now; started again first where it died. Raises EnvironmentFault."""

    @abstractmethod
    async def stop(self) -> None:
        """Free what it holds."""


class RunningServer(Server):
    """A MariaDB or MySQL server that others look after."""

    private = False

    def __init__(self, address: ServerAddress) -> None:
        self._address = address

    async def start(self) -> None:
        """Nothing to do: it runs."""

    async def address(self) -> ServerAddress:
        return self._address

    async def stop(self) -> None:
        """Nothing to do: it is not ours."""


def parse_url(url: str, password: str | None) -> ServerAddress:
    """The address in `mysql://user@host[:port]/[?unix_socket=path]`, with the password that stands elsewhere.

    Raises ValueError, which never repeats the URL, also where it holds a password: plans and stores must not.
    """
    form = f"write it as mysql://user@host:3306/ and the password into {PASSWORD_VARIABLE}"
    try:
        parts = urlsplit(url)
        port = parts.port or 3306
    except ValueError as error:
        raise ValueError(f"not a server URL; {form}") from error
    if parts.scheme not in ("mysql", "mariadb") or not parts.hostname or not parts.username:
        raise ValueError(f"not a server URL with scheme, user and host; {form}")
    if parts.password is not None:
        raise ValueError(f"a password does not belong into a file; {form}")
    return ServerAddress(
        user=unquote(parts.username),
        password=password or "",
        socket=parse_qs(parts.query).get("unix_socket", [None])[0],
        host=parts.hostname,
        port=port,
    )
