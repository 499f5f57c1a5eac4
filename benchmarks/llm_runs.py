"""Asking a model about pictures: what `hitmiss llm` adds to inspect_ai alone, and to a plain loop over OpenAI's client.

    python benchmarks/llm_runs.py          (needs inspect_ai and openai)

All ask the same local server about the same 200 pictures with the same words, 20 requests at once. inspect_ai alone: one
task with a scorer, its defaults, pictures not logged. Plain loop: 20 threads, answers kept in memory, written at the end,
no resume. hitmiss: everything that its page says. Processor time of the asking process, less that of asking about one
picture (start and imports); the server is another process.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

PICTURES = 200
LAPS = 3

BARE = """
import base64, json, sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ContentImage, ContentText, GenerateConfig, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate
from hitmiss.llm.prompts import SYSTEM, USER
url, dataset, out, n = sys.argv[1:5]
rows = [json.loads(line) for line in open(dataset)][: int(n)]
def sample(row):
    data = base64.b64encode(open(f"{dataset.rpartition('/')[0]}/{row['image']}", "rb").read()).decode()
    content = [ContentText(text=USER["image"]), ContentImage(image=f"data:image/jpeg;base64,{data}")]
    return Sample(id=row["id"], target=row["label"], input=[ChatMessageSystem(content=SYSTEM), ChatMessageUser(content=content)])
model = get_model("openai-api/bare/judge", base_url=url, api_key="none", config=GenerateConfig(max_connections=20, temperature=0))
logs = eval(Task(dataset=[sample(r) for r in rows], solver=generate(), scorer=includes()), model=model, display="none", log_dir=out, log_images=False)
assert logs[0].status == "success"
"""

PLAIN = """
import base64, json, sys
from concurrent.futures import ThreadPoolExecutor
from openai import OpenAI
from hitmiss.llm.prompts import SYSTEM, USER
url, dataset, out, n = sys.argv[1:5]
rows = [json.loads(line) for line in open(dataset)][: int(n)]
client = OpenAI(base_url=url, api_key="none")
def ask(row):
    data = base64.b64encode(open(f"{dataset.rpartition('/')[0]}/{row['image']}", "rb").read()).decode()
    content = [{"type": "text", "text": USER["image"]}, {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}}]
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content}]
    said = client.chat.completions.create(model="judge", messages=messages, temperature=0).choices[0].message.content
    return {**row, **json.loads(said)}
with ThreadPoolExecutor(20) as pool:
    answers = list(pool.map(ask, rows))
open(out + ".jsonl", "w").write("".join(json.dumps(a) + chr(10) for a in answers))
"""

OURS = """
import sys
from hitmiss.cli.main import run
url, dataset, out, n = sys.argv[1:5]
words = ["llm", "--dataset", dataset, "--models", "judge", "--base-url", url, "-o", out + ".jsonl", "--limit", n]
sys.exit(run([*words, "--max-connections", "20", "--json"]))
"""


def seconds(script: str, url: str, dataset: Path, n: int) -> float:
    """Processor seconds of one run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        homes = {f"XDG_{name}_HOME": folder for name in ("CACHE", "DATA", "CONFIG")}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = [sys.executable, "-c", textwrap.dedent(script), url, str(dataset), f"{folder}/out", str(n)]
        subprocess.run(words, env={**os.environ, **homes}, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and print the table."""
    from hitmiss.llm.standin import StandIn
    from hitmiss.simulate.pictures import write

    with tempfile.TemporaryDirectory() as folder, StandIn() as server:
        dataset = write(folder, share=PICTURES / 120, side=64) / "dataset.jsonl"
        scripts = {"plain loop (openai)": PLAIN, "inspect_ai alone": BARE, "hitmiss llm": OURS}
        taken: dict[str, tuple[float, float]] = {}
        for name, script in scripts.items():
            starts = min(seconds(script, server.url, dataset, 1) for _ in range(LAPS))
            whole = min(seconds(script, server.url, dataset, PICTURES) for _ in range(LAPS))
            taken[name] = starts, (whole - starts) / (PICTURES - 1)
    base = taken["inspect_ai alone"]
    print("| | start, CPU s | each picture, CPU ms | against inspect_ai alone |\n|---|---:|---:|---:|")
    for name, (starts, each) in taken.items():
        print(f"| {name} | {starts:.1f} | {1e3 * each:.1f} | {each / base[1]:.2f} × |")


if __name__ == "__main__":
    main()
