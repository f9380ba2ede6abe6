"""The one client for any OpenAI-compatible endpoint: agents under test, judges, simulated users."""

from environments.chat.config import ChatConfig
from environments.chat.model import ChatModel, Completion, EndpointEvent
from environments.chat.settings import secret, setting
from environments.chat.wire import Usage

__all__ = ["ChatConfig", "ChatModel", "Completion", "EndpointEvent", "Usage", "secret", "setting"]
