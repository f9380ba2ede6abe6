"""TLS settings: the certificate of a process and the authorities it trusts. No setting turns verification off."""

import base64
import re
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from proctor.config.problems import FieldProblem
from proctor.config.secrets import Renewed
from proctor.config.yaml import FieldErrors
from proctor.types import Value

if TYPE_CHECKING:
    import wreq


class Tls(Value):
    """PEM files for outgoing calls; each is optional."""

    ca: Path | None = None
    """Authorities that are trusted in addition to the public ones."""
    cert: Path | None = None
    """Our own certificate, with its chain: sent where the other side requests one (mutual TLS)."""
    key: Path | None = None
    """The certificate's private key, without a passphrase."""

    @model_validator(mode="after")
    def _paired(self) -> Self:
        if (self.cert is None) != (self.key is None):
            raise ValueError("a certificate and its key go together; give both `cert` and `key`, or neither")
        return self

    def relative_to(self, folder: Path) -> Self:
        """A copy with paths resolved against a folder, normally that of their file."""
        fields = ((name, getattr(self, name)) for name in type(self).model_fields)
        return self.model_copy(update={name: folder / path for name, path in fields if path is not None})

    def files(self) -> list[Path]:
        """The files that are named."""
        return [path for name in type(self).model_fields if (path := getattr(self, name)) is not None]

    def context(self) -> ssl.SSLContext:
        """The context of outgoing calls: certificates and host names are verified. Raises FieldErrors."""
        context = ssl.create_default_context(cafile=_public_authorities())
        if self.ca is not None:
            _trust(context, self.ca, "ca")
        if self.cert is not None and self.key is not None:
            _load_certificate(context, self.cert, self.key)
        return context


class ServerTls(Tls):
    """PEM files of a server: with a certificate it serves TLS, and sends the same one in outgoing calls."""

    client_ca: Path | None = None
    """Authorities of clients: only a client with a certificate that one of them signed can connect (mutual TLS)."""

    @model_validator(mode="after")
    def _serves(self) -> Self:
        if self.client_ca is not None and self.cert is None:
            raise ValueError("client certificates can only be required over TLS; give `cert` and `key` too")
        return self

    @property
    def scheme(self) -> str:
        """The scheme of the server's URL."""
        return "http" if self.cert is None else "https"

    def server_context(self) -> "Renewed[ssl.SSLContext] | None":
        """The context of incoming calls; None without a certificate. Raises FieldErrors."""
        return None if self.cert is None else Renewed("TLS files", self.files(), self._loaded)

    def _loaded(self) -> ssl.SSLContext:
        assert self.cert is not None
        assert self.key is not None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _load_certificate(context, self.cert, self.key)
        if self.client_ca is not None:
            _trust(context, self.client_ca, "client_ca")
            context.verify_mode = ssl.CERT_REQUIRED
        return context


NO_TLS = ServerTls.model_construct()  # nothing to validate, so no validator is built


def _trust(context: ssl.SSLContext, path: Path, field: str) -> None:
    try:
        context.load_verify_locations(cafile=path)
    except OSError as error:  # ssl.SSLError is one
        text = f"{path} holds no certificates that can be read: {error}; give a PEM file"
        raise FieldErrors([FieldProblem(("tls", field), text)]) from error


def _load_certificate(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    try:
        context.load_cert_chain(cert, key, password=_no_passphrase)
    except (OSError, ValueError) as error:
        fix = "give the PEM files of one pair, the key without a passphrase"
        text = f"{cert} and {key} can't be used: {error}; {fix}"
        raise FieldErrors([FieldProblem(("tls", "cert"), text)]) from error


def _no_passphrase() -> str:
    """Raises ValueError, where OpenSSL would prompt at the terminal."""
    raise ValueError("the key has a passphrase")


SIGNATURES = (
    "ecdsa_secp256r1_sha256:ecdsa_secp384r1_sha384:ecdsa_secp521r1_sha512:ed25519:"
    "rsa_pss_rsae_sha256:rsa_pss_rsae_sha384:rsa_pss_rsae_sha512:rsa_pkcs1_sha256:rsa_pkcs1_sha384:rsa_pkcs1_sha512"
)
"""Of servers' certificates; wreq's own list lacks ed25519."""
PRIVATE_KEY = re.compile(rb"-----BEGIN (RSA |EC |)PRIVATE KEY-----(.+?)-----END", re.DOTALL)
RSA = bytes.fromhex("300d06092a864886f70d0101010500")
EC = bytes.fromhex("06072a8648ce3d0201")
CURVES = tuple(map(bytes.fromhex, ("06082a8648ce3d030107", "06052b81040022", "06052b81040023")))  # P-256, P-384, P-521


def wreq_tls(tls: Tls) -> "wreq.ClientConfig":
    """The settings of a wreq client that trusts and shows what `tls.context()` does. Raises FieldErrors."""
    import wreq

    tls.context()  # names the file that can't be used
    authorities = Path(_public_authorities()).read_bytes()
    if tls.ca is not None:
        authorities += b"\n" + tls.ca.read_bytes()
    settings: wreq.ClientConfig = {
        "tls_verify": wreq.CertStore.from_pem_stack(authorities),
        "tls_options": wreq.TlsOptions(sigalgs_list=SIGNATURES),
    }
    if tls.cert is not None and tls.key is not None:
        try:
            identity = wreq.Identity.from_pkcs8_pem(tls.cert.read_bytes(), _pkcs8(tls.key.read_bytes()))
        except wreq.TlsError as error:
            text = f"{tls.key} is of a kind that our client can't use; give an RSA, EC or Ed25519 key"
            raise FieldErrors([FieldProblem(("tls", "key"), text)]) from error
        settings["tls_identity"] = identity
    return settings


def _public_authorities() -> str:
    import certifi

    return certifi.where()


def _pkcs8(pem: bytes) -> bytes:
    """The private key as PKCS#8, the one form that wreq reads; RSA and EC keys in their own forms are wrapped."""
    found = PRIVATE_KEY.search(pem)
    assert found is not None  # OpenSSL has read it
    form, der = found[1], base64.b64decode(found[2])
    if form:
        curve = next((curve for curve in CURVES if curve in der), b"")
        algorithm = RSA if form == b"RSA " else _der(0x30, EC + curve)
        der = _der(0x30, b"\x02\x01\x00" + algorithm + _der(0x04, der))
    return b"-----BEGIN PRIVATE KEY-----\n" + base64.encodebytes(der) + b"-----END PRIVATE KEY-----\n"


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, size]) + content if size < 128 else bytes([tag, 128 + len(length)]) + length + content
