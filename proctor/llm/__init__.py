"""A client for OpenAI-compatible chat endpoints, and cached models for judges, hosts and simulated users."""

from proctor.config.secrets import secret, setting
from proctor.llm.cache import Replies, default_folder, key_of
from proctor.llm.cached_model import Answer, CachedModel, NoReadableReply, Question
from proctor.llm.config import ChatConfig
from proctor.llm.kept_replies import ModelReply
from proctor.llm.model import ChatModel, Completion, EndpointEvent
from proctor.llm.wire import Usage

__all__ = [
    "Answer",
    "CachedModel",
    "ChatConfig",
    "ChatModel",
    "Completion",
    "EndpointEvent",
    "ModelReply",
    "NoReadableReply",
    "Question",
    "Replies",
    "Usage",
    "default_folder",
    "key_of",
    "secret",
    "setting",
]
