"""The JSON Schema of plans has the meanings that the source has."""

import json

from click.testing import CliRunner

from eval_client.cli.plans.plan_file import plan


def test_the_schema_says_what_fields_mean() -> None:
    printed = json.loads(CliRunner().invoke(plan, ["print", "--schema"]).stdout)
    assert printed["properties"]["epochs"]["description"] == "How often each agent plays each sample."
    assert printed["$defs"]["SampleSelection"]["properties"]["limit"]["description"].startswith("Play at most so many")
