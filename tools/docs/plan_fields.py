"""The reference of plan fields, from the JSON Schema of plans."""

from typing import Any

from eval_client.plan.plan import Plan
from proctor.config.model_fields import describe
from tools.docs.links import anchor
from tools.docs.markdown import markdown
from tools.docs.schema import fields, named, reached

OF_A_CONTROLLER = "RemoteTask"


def page() -> str:
    """docs/reference/plan-fields.md."""
    schema = Plan.model_json_schema()
    definitions: dict[str, dict[str, Any]] = schema["$defs"]
    describe({**definitions, Plan.__name__: schema}, Plan)
    paths = _paths(schema, definitions)

    def link(name: str) -> str:
        return f"[{paths[name]}](#{anchor(paths[name])})" if name in paths else "any JSON"

    parts = [
        "# Plan fields",
        "For whoever writes a plan: the fields of each part with type, default and meaning. What they do together is "
        "in [Plans and runs](plans.md); `proctor plan print --schema` prints the same as JSON Schema, for editors.",
        fields(schema, link),
    ]
    for name, path in paths.items():
        parts += [f"## {path}", definitions[name]["description"], fields(definitions[name], link)]
    return markdown(parts)


def _paths(schema: dict[str, Any], definitions: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Name of a model -> where its fields stand in a plan."""
    paths: dict[str, str] = {}
    places = [("", schema), *((name, definitions[name]) for name in reached(schema, definitions))]
    for owner, part in places:
        for field, value in part.get("properties", {}).items():
            for name in named(value):
                if "properties" in definitions[name] and name not in paths:
                    many = "[]" if value.get("type") == "array" else ""
                    paths[name] = f"{paths[owner]}.{field}{many}" if owner else f"{field}{many}"
    return paths | {OF_A_CONTROLLER: f"{paths[OF_A_CONTROLLER]} of a controller"}
