"""Certificates: what a process shows, and whom it believes. No setting turns verification off."""

import os
import ssl
from pathlib import Path
from typing import Self

from pydantic import model_validator

from proctor.config.yaml import FileError
from proctor.types import Value


class Tls(Value):
    """PEM files for calling others; each may be absent."""

    ca: Path | None = None
    """Authorities whose certificates are believed, besides those that everybody believes."""
    cert: Path | None = None
    """Our own certificate, with its chain: shown where one is asked for (mutual TLS)."""
    key: Path | None = None
    """The certificate's private key, without a passphrase."""

    @model_validator(mode="after")
    def _paired(self) -> Self:
        if (self.cert is None) != (self.key is None):
            raise ValueError("a certificate and its key go together; give both `cert` and `key`, or neither")
        return self

    def relative_to(self, folder: Path) -> Self:
        """The same with paths taken relative to a folder, normally their file's own."""
        fields = ((name, getattr(self, name)) for name in type(self).model_fields)
        return self.model_copy(update={name: folder / path for name, path in fields if path is not None})

    def context(self, *, trust_env: bool = False) -> ssl.SSLContext:
        """For calling others: certificates and host names are verified. Raises FileError."""
        import certifi

        everybodys = os.environ.get("SSL_CERT_FILE") if trust_env else None
        context = ssl.create_default_context(cafile=everybodys or certifi.where())
        if self.ca is not None:
            _believe(context, self.ca, "ca")
        if self.cert is not None and self.key is not None:
            _show(context, self.cert, self.key)
        return context


class ServerTls(Tls):
    """PEM files of a server: with a certificate it speaks TLS, and shows the same one where it calls others."""

    client_ca: Path | None = None
    """Only clients whose certificate one of these authorities signed are talked to (mutual TLS)."""

    @model_validator(mode="after")
    def _serves(self) -> Self:
        if self.client_ca is not None and self.cert is None:
            raise ValueError("client certificates can only be asked for over TLS; give `cert` and `key` too")
        return self

    @property
    def scheme(self) -> str:
        """Of the server's URL."""
        return "http" if self.cert is None else "https"

    def server_context(self) -> ssl.SSLContext | None:
        """For being called; None where the server speaks no TLS. Raises FileError."""
        if self.cert is None or self.key is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _show(context, self.cert, self.key)
        if self.client_ca is not None:
            _believe(context, self.client_ca, "client_ca")
            context.verify_mode = ssl.CERT_REQUIRED
        return context


NO_TLS = ServerTls.model_construct()  # which builds no validator: there is nothing to validate


def _believe(context: ssl.SSLContext, path: Path, field: str) -> None:
    try:
        context.load_verify_locations(cafile=path)
    except OSError as error:  # ssl.SSLError is one
        raise FileError(
            f"tls.{field}: {path} holds no certificates that can be read: {error}; give a PEM file"
        ) from error


def _show(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    try:
        context.load_cert_chain(cert, key, password=_no_passphrase)
    except (OSError, ValueError) as error:
        fix = "give the PEM files of one pair, the key without a passphrase"
        raise FileError(f"tls.cert, tls.key: {cert} and {key} can't be used: {error}; {fix}") from error


def _no_passphrase() -> str:
    """Instead of OpenSSL's question at the terminal."""
    raise ValueError("the key has a passphrase")
