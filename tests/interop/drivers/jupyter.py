"""Runs the cells of a `# %%` file in a Jupyter kernel; prints a JSON line for each: output, tables and error.

Interrupts the kernel, as the stop button does, when a cell prints `called`.
"""

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

TIMEOUT_S = 600


def main(path: str) -> None:
    """Run the file."""
    manager, client = importlib.import_module("jupyter_client.manager").start_new_kernel()
    try:
        for part in re.split(r"^# %%", Path(path).read_text(encoding="utf-8"), flags=re.MULTILINE):
            kind, _, cell = part.partition("\n")
            if "[markdown]" not in kind and cell.strip():
                print(json.dumps(_executed(manager, client, cell)), flush=True)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _executed(manager: Any, client: Any, cell: str) -> dict[str, str | None]:
    texts: list[str] = []
    tables: list[str] = []

    def hook(message: dict[str, Any]) -> None:
        if message["msg_type"] in ("display_data", "execute_result"):
            tables.append(message["content"]["data"].get("text/html", ""))
        if message["msg_type"] == "stream":
            texts.append(message["content"]["text"])
            if len(texts) == 1 and texts[0].startswith("called"):
                manager.interrupt_kernel()

    content = client.execute_interactive(cell, timeout=TIMEOUT_S, output_hook=hook)["content"]
    return {"output": "".join(texts), "tables": "".join(tables), "error": content.get("ename")}


if __name__ == "__main__":
    main(sys.argv[1])
