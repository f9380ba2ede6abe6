"""An endpoint as requests reach it: their URL, headers and key, and the replies that are streamed."""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from proctor.config.secrets import secret_text
from proctor.config.wording import ENV_PROXY
from proctor.connection.event_stream import is_event_stream, whole_answer
from proctor.connection.fields import CONVERSATION, UNVERIFIED, VARIABLES, ConnectionFields, proxy_url, unverified
from proctor.connection.keys import KeySource, shared_source
from proctor.http.client import HttpReply, ReplyTooLarge, Route
from proctor.observability.logging import known_id
from proctor.observability.redaction import is_real_key


class Connection:
    """One endpoint as requests reach it. Raises ValueError where a variable is unset, or holds what can't be sent."""

    def __init__(self, fields: ConnectionFields, url: str, variable: str, key_header: str) -> None:
        self.url, self.streams = url, fields.stream
        if not fields.tls.verify and unverified(url):
            raise ValueError(f"tls.verify: {UNVERIFIED}")
        file, command = fields.api_key_file, fields.api_key_command
        shared = file is not None or command
        self.keys = shared_source(variable, file, command, fields.key_ttl_s) if shared else KeySource(variable)
        self._values = set[str]()
        """What variables in headers and query hold."""
        self._headers = {name.lower(): self._expanded(f"headers.{name}", text) for name, text in fields.headers.items()}
        query = {name: self._expanded(f"query.{name}", text) for name, text in fields.query.items()}
        self._query = f"?{urlencode(query)}" if query else ""
        self._key_header = (fields.api_key_header or key_header).lower()
        proxy = fields.proxy and self._expanded("proxy", fields.proxy)
        if proxy and proxy != ENV_PROXY:
            proxy_url(proxy, "proxy: ")
        self.route = Route(proxy or None, fields.tls.verify)
        self._plain: dict[str | None, Mapping[str, str]] = {}
        """key -> the headers of requests with it, where they are the same for all conversations"""

    def _expanded(self, field: str, text: str) -> str:
        """A value with its variables, which are secrets. Raises ValueError."""

        def value(found: "re.Match[str]") -> str:
            held = secret_text(found[1])
            if not held:
                raise ValueError(f"{field}: the variable {found[1]} is unset; set it, or remove `{found[0]}`")
            if not (held.isascii() and held.isprintable()):
                raise ValueError(f"{field}: the variable {found[1]} holds characters that can't be sent; copy it again")
            self._values.add(held)
            return held

        return VARIABLES.sub(value, text)

    def secrets(self, key: str | None) -> Sequence[str]:
        """What a request with this key holds and may be real keys: this one, those of headers and query."""
        return [*filter(is_real_key, self._values if key is None else (*self._values, key))]

    def headers(self, key: str | None, more: Mapping[str, str]) -> Mapping[str, str]:
        """The headers of a request, in lower case; the endpoint's own before those of its dialect and the key's."""
        if not more and key in self._plain:
            return self._plain[key]
        headers = {"content-type": "application/json"}
        if self.streams:
            headers["connection"] = "close"  # llama.cpp and others end it after a stream without saying so
        if key is not None:
            headers[self._key_header] = f"Bearer {key}" if self._key_header == "authorization" else key
        headers |= more
        headers |= {name: with_conversation(text) for name, text in self._headers.items()}
        if not more and not any(CONVERSATION in text for text in self._headers.values()):
            self._plain[key] = headers
        return headers

    def url_of(self, path: str) -> str:
        """The URL of a request."""
        return f"{self.url}{path}{self._query}"

    def whole(self, reply: HttpReply, max_bytes: int) -> HttpReply:
        """The reply; a streamed one is put together. Raises ReplyTooLarge where it is larger than that then."""
        if reply.body.startswith(b"{") or not is_event_stream(reply.headers.get("content-type"), reply.body):
            return reply
        reply = reply._replace(body=whole_answer(reply.body))
        if len(reply.body) > max_bytes:
            raise ReplyTooLarge(f"{self.url}: the reply is larger than {max_bytes} bytes")
        return reply


def with_conversation(text: str) -> str:
    """The text with an id in place of `{conversation}`: unique over runs, trials and attempts."""
    if CONVERSATION not in text:
        return text
    ids = [known_id(name) for name in ("run", "trial", "session")]
    told = "\0".join(ids if any(ids) else [str(os.getpid())]).encode()
    return text.replace(CONVERSATION, hashlib.blake2b(told, digest_size=16).hexdigest())
