"""Serves the toy task of a file with AgentRL's worker at loopback: `agentrl_worker.py TOY_TASK_FILE PORT`."""

import importlib.util
import logging
import sys

from agentrl.worker.task_worker import TaskWorker

spec = importlib.util.spec_from_file_location("toy_task", sys.argv[1])
assert spec is not None
assert spec.loader is not None
toy = importlib.util.module_from_spec(spec)
spec.loader.exec_module(toy)
logging.basicConfig(level=logging.ERROR)
nobody = "http://127.0.0.1:9/api"
worker = TaskWorker(toy.Toy(name="toy-std", concurrency=2), controller_address=nobody, self_address=nobody)
worker.run(host="127.0.0.1", port=int(sys.argv[2]))
