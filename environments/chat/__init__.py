"""The one client for any OpenAI-compatible endpoint: agents under test, judges, simulated users."""

from environments.chat.cached import Answer, CachedModel, NoReadableReply, Question
from environments.chat.config import ChatConfig
from environments.chat.model import ChatModel, Completion, EndpointEvent
from environments.chat.replies import Replies, default_folder, key_of
from environments.chat.settings import secret, setting
from environments.chat.wire import Usage
from environments.kept_replies import Reply

__all__ = [
    "Answer",
    "CachedModel",
    "ChatConfig",
    "ChatModel",
    "Completion",
    "EndpointEvent",
    "NoReadableReply",
    "Question",
    "Replies",
    "Reply",
    "Usage",
    "default_folder",
    "key_of",
    "secret",
    "setting",
]
