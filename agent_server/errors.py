"""The exception that becomes an OpenAI error object."""

from collections.abc import Mapping

from pydantic_core import to_json

from proctor.observability.redaction import redacted


class RequestRefused(Exception):
    """A request that gets an error object instead of an answer; secrets in its message are redacted."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        type: str = "invalid_request_error",
        param: str | None = None,
        headers: Mapping[str, str] = {},
        passed_on: bytes | None = None,
    ) -> None:
        """`passed_on` is sent in place of OpenAI's error object."""
        message = redacted(message)
        super().__init__(message)
        self.status, self.message, self.code, self.type, self.param = status, message, code, type, param
        self.headers, self._passed_on = headers, passed_on

    def body(self) -> bytes:
        """The OpenAI error object, or what is passed on."""
        error = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return to_json({"error": error}) if self._passed_on is None else self._passed_on
