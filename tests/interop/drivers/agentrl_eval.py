"""Plays samples with AgentRL's client: `agentrl_eval.py BASE_URL TASK SCRIPTS`; prints a JSON line for each result.

SCRIPTS is a JSON list of [index, the assistant messages of the agent, one for each turn; the last one is repeated].
"""

import asyncio
import json
import sys
from typing import Any

from agentrl.eval.convert import OpenAIChatCompletionInputMessageRecord
from agentrl.eval.session.controller import ControllerClient
from agentrl.eval.session.types import RunSpec
from agentrl.eval.session.workflow import SampleWorkflow


class Scripted:
    def __init__(self, messages: list[Any]) -> None:
        self.messages, self.turn = messages, 0

    async def query(self, messages: list[Any], tools: object = None, cache_key: str | None = None) -> list[Any]:
        message = self.messages[min(self.turn, len(self.messages) - 1)]
        self.turn += 1
        return [OpenAIChatCompletionInputMessageRecord([message])]


async def main(base: str, task: str, scripts: list[Any]) -> None:
    controller = ControllerClient(base, proxy_url=None)
    for index, messages in scripts:
        spec = RunSpec(model="scripted", run=0, task=task, index=index, custom_params=None)
        result = await SampleWorkflow(controller=controller, models=[Scripted(messages)], spec=spec)()
        told = {"status": result.status, "reward": result.reward, "score": result.score, "result": result.result}
        print(json.dumps(told, default=str), flush=True)
    await controller.close()


asyncio.run(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
