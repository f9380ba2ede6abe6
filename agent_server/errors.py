"""The exception that becomes an OpenAI error object."""

from pydantic_core import to_json


class RequestRefused(Exception):
    """A request that gets an error object instead of an answer."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        type: str = "invalid_request_error",
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.type, self.param = status, message, code, type, param
        self.retry_after_s = retry_after_s

    def body(self) -> bytes:
        """The OpenAI error object."""
        error = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return to_json({"error": error})
