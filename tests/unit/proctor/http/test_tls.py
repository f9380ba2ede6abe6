"""Certificates that can't be used are an error before a server or a client starts."""

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from proctor.config.yaml import FileError
from proctor.http.client import ConnectionFailed, Route, Untrusted, bounded_request, http_client
from proctor.http.tls import ServerTls, Tls
from tests.pace import slowly

MAKE = "openssl req -x509 -newkey ed25519 -subj /CN={0} -keyout {0}.key -out {0}.pem -days 1 -addext"


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pairs `one` and `two`, `one` for 127.0.0.1; `locked.key` has a passphrase, `text.pem` is none."""
    folder = tmp_path_factory.mktemp("pems")
    assert shutil.which("openssl"), "no openssl; install it, or run `make test` as root, which does"
    for name in ("one", "two"):
        command = [*MAKE.format(name).split(), "subjectAltName=IP:127.0.0.1", "-noenc"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    locked = ["openssl", "pkey", "-in", "one.key", "-aes128", "-passout", "pass:canary", "-out", "locked.key"]
    subprocess.run(locked, cwd=folder, check=True, capture_output=True)
    (folder / "text.pem").write_text("hello\n")
    return folder


@pytest.mark.parametrize(
    ("cert", "key", "says"),
    [
        ("one.pem", "two.key", "tls.cert: .*MISMATCH"),
        ("one.pem", "locked.key", "the key has a passphrase"),
        ("one.pem", "gone.key", "No such file"),
        ("text.pem", "one.key", "tls.cert: .*text.pem"),
    ],
)
def test_a_pair_that_is_none_is_refused(pems: Path, cert: str, key: str, says: str) -> None:
    tls = ServerTls(cert=pems / cert, key=pems / key)
    with pytest.raises(FileError, match=says):
        tls.server_context()
    with pytest.raises(FileError, match=says):
        tls.context()


def test_an_authority_that_is_none_is_refused(pems: Path) -> None:
    with pytest.raises(FileError, match=r"tls\.ca: .*text\.pem"):
        Tls(ca=pems / "text.pem").context()
    with pytest.raises(FileError, match=r"tls\.client_ca: .*gone\.pem"):
        ServerTls(cert=pems / "one.pem", key=pems / "one.key", client_ca=pems / "gone.pem").server_context()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"cert": "a"}, "go together"),
        ({"key": "a"}, "go together"),
        ({"client_ca": "a"}, "only be required over TLS"),
        ({"verify": False}, "Extra inputs"),
    ],
)
def test_half_a_configuration_is_refused(fields: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        ServerTls.model_validate(fields)


def test_whoever_calls_verifies_names_and_certificates(pems: Path) -> None:
    context = Tls(ca=pems / "one.pem", cert=pems / "one.pem", key=pems / "one.key").context()
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert len(context.get_ca_certs()) == len(Tls().context().get_ca_certs()) + 1


def test_paths_are_taken_relative_to_their_file() -> None:
    tls = ServerTls(cert=Path("c"), key=Path("/k")).relative_to(Path("/etc"))
    assert (tls.cert, tls.key, tls.ca, tls.scheme) == (Path("/etc/c"), Path("/k"), None, "https")
    assert ServerTls().scheme == "http"


async def test_an_unknown_authority_is_a_failure_of_its_own(pems: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pems / "one.pem", pems / "one.key")
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, http_client() as stranger, http_client(tls=Tls(ca=pems / "one.pem")) as friend:
        with pytest.raises(Untrusted, match="certificate verify failed"):
            await bounded_request(stranger, "GET", url, deadline_s=slowly(9), max_bytes=9)
        with pytest.raises(ConnectionFailed) as caught:
            await bounded_request(friend, "GET", url, deadline_s=slowly(9), max_bytes=9)
        with pytest.raises(ConnectionFailed) as unverified:
            await bounded_request(stranger, "GET", url, deadline_s=slowly(9), max_bytes=9, route=Route(verify=False))
        with pytest.raises(Untrusted):
            await bounded_request(stranger, "GET", url, deadline_s=slowly(9), max_bytes=9)
    assert not isinstance(caught.value, Untrusted)
    assert not isinstance(unverified.value, Untrusted)
