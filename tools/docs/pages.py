"""The references that are made from the code."""

import json
from functools import cache

from tools.docs import commands, http_api, plan_fields
from tools.docs.links import DOCS

FOLDER = DOCS / "reference"


@cache
def pages() -> dict[str, str]:
    """name of a file of docs/reference/ -> its text"""
    documents = {name: json.dumps(each, indent=1) + "\n" for name, each in http_api.documents().items()}
    return {"cli.md": commands.page(), "http.md": http_api.page(), "plan-fields.md": plan_fields.page(), **documents}
