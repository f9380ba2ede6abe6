"""Validates the trajectories of a folder with Harbor's own model, and prints a JSON line for each."""

import json
import sys
from pathlib import Path

from harbor.models.trajectories import Trajectory

for path in sorted(Path(sys.argv[1]).rglob("trajectory.json")):
    read = Trajectory.model_validate(json.loads(path.read_text()))
    print(
        json.dumps(
            {
                "path": str(path.relative_to(sys.argv[1])),
                "calls": [
                    [call.tool_call_id, call.function_name, call.arguments]
                    for step in read.steps
                    for call in step.tool_calls or []
                ],
                "tools": [each["function"]["name"] for each in read.agent.tool_definitions or []],
                "prompt_tokens": read.final_metrics.total_prompt_tokens,
                "proctor": read.extra["proctor"],
            }
        )
    )
