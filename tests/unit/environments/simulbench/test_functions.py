"""SimulBench has no functions: the reply is the product."""

import re

import pytest
from pydantic import ValidationError

from environments.simulbench.environment import SimulBench
from environments.simulbench.records import Mode
from proctor.config.task import TaskDefinition


@pytest.mark.parametrize("mode", ["script", "live", "extract", "generate", "compare"])
def test_protocol_tools_is_refused_with_field_reason_and_fix(mode: Mode) -> None:
    told = "protocol: the agent's reply is what is judged, so there are no functions; set it to text"
    with pytest.raises(ValidationError, match=re.escape(told)):
        SimulBench(mode=mode, protocol="tools")


def test_a_task_definition_with_protocol_tools_is_refused_when_it_is_built() -> None:
    definition = TaskDefinition(name="sim", environment="simulbench", parameters={"protocol": "tools"})
    with pytest.raises(ValueError, match="protocol: the agent's reply is what is judged"):
        definition.build()


def test_protocol_text_is_the_default_and_changes_no_digest() -> None:
    assert SimulBench(protocol="text") == SimulBench()
    assert SimulBench().digest() == "20f006748918149dc5ac5d7ae26e1523"
