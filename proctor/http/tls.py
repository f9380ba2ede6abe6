"""TLS settings: the certificate of a process and the authorities it trusts. No setting turns verification off."""

import os
import ssl
from pathlib import Path
from typing import Self

from pydantic import model_validator

from proctor.config.problems import FieldProblem
from proctor.config.yaml import FieldErrors
from proctor.types import Value


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

    def context(self, *, trust_env: bool = False) -> ssl.SSLContext:
        """The context of outgoing calls: certificates and host names are verified. Raises FieldErrors."""
        import certifi

        public_authorities = os.environ.get("SSL_CERT_FILE") if trust_env else None
        context = ssl.create_default_context(cafile=public_authorities or certifi.where())
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

    def server_context(self) -> ssl.SSLContext | None:
        """The context of incoming calls; None without a certificate. Raises FieldErrors."""
        if self.cert is None or self.key is None:
            return None
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
