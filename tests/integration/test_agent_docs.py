"""What docs/how-to/agents.md shows works as shown."""

import re

import httpx
import yaml

from agent_server.config import AgentServerConfig
from proctor.llm.config import ChatConfig
from proctor.llm.model import ChatModel
from proctor.types import Message
from tests.support import ROOT, via

GUIDE = (ROOT / "docs" / "how-to" / "agents.md").read_text(encoding="utf-8")


def block(language: str, holding: str) -> str:
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    return next(text for text in blocks if holding in text)


def test_the_settings_shown_are_settings() -> None:
    config = AgentServerConfig.model_validate(yaml.safe_load(block("yaml", "token_env")))
    assert {agent.kind for agent in config.agents} == {"reference", "recorded", "human", "proxied"}


async def test_the_program_shown_is_an_agent() -> None:
    names: dict[str, object] = {"my_agent": lambda messages, tools: f"{len(messages)} messages"}
    exec(block("python", "my_agent"), names)
    app = names["app"]
    assert callable(app)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
        model = ChatModel(ChatConfig(model="mine", base_url="http://agent/v1"), via(client))
        completion = await model.complete([Message(role="user", content="hello")])
    assert (completion.action.content, completion.model) == ("1 messages", "mine")
