"""Asking a model about pictures and texts: what `hitmiss llm` adds to a plain loop, and to inspect_ai alone.

    python benchmarks/llm_runs.py [--texts N]          (needs inspect_ai, openai and httpx)

All ask the same local server, which answers at once and is another process, about the same 200 pictures or 2,000 texts with
the same words, 20 requests at once. Plain loop: httpx or OpenAI's client, answers kept in memory, written at the end, no
resume. inspect_ai alone: one task with a scorer, its defaults, pictures not logged. hitmiss: everything that its page says,
with every request on the disk before it is sent. Processor time and largest memory of the asking process; a call is what
more calls add to the time of one call (start and imports). `--texts 100000` adds a row of so many texts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

PICTURES, TEXTS = 200, 2000
LAPS = 3
VERDICT = json.dumps(
    {"verdict": "fake", "confidence": 0.9, "rationale": "The frequencies show the traces of a generator."}
)

COMMON = """
import base64, json, sys
from hitmiss.llm.prompts import SYSTEM, USER, as_data
url, dataset, out, n = sys.argv[1:5]
rows = [json.loads(line) for line in open(dataset)][: int(n)]
def picture(row):
    return base64.b64encode(open(f"{dataset.rpartition('/')[0]}/{row['image']}", "rb").read()).decode()
"""

BARE = (
    COMMON
    + """
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ContentImage, ContentText, GenerateConfig, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate
def sample(row):
    kind = "image" if "image" in row else "text"
    item = ContentImage(image=f"data:image/jpeg;base64,{picture(row)}") if kind == "image" else ContentText(text=as_data(row["text"]))
    content = [ContentText(text=USER[kind]), item]
    return Sample(id=row["id"], target=row["label"], input=[ChatMessageSystem(content=SYSTEM), ChatMessageUser(content=content)])
model = get_model("openai-api/bare/judge", base_url=url, api_key="none", config=GenerateConfig(max_connections=20, temperature=0))
logs = eval(Task(dataset=[sample(r) for r in rows], solver=generate(), scorer=includes()), model=model, display="none", log_dir=out, log_images=False)
assert logs[0].status == "success"
"""
)

ASKED = (
    COMMON
    + """
def messages(row):
    kind = "image" if "image" in row else "text"
    item = {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{picture(row)}"}} if kind == "image" else {"type": "text", "text": as_data(row["text"])}
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": [{"type": "text", "text": USER[kind]}, item]}]
"""
)

OPENAI = (
    ASKED
    + """
from concurrent.futures import ThreadPoolExecutor
from openai import OpenAI
client = OpenAI(base_url=url, api_key="none")
def ask(row):
    said = client.chat.completions.create(model="judge", messages=messages(row), temperature=0).choices[0].message.content
    return {**row, **json.loads(said)}
with ThreadPoolExecutor(20) as pool:
    answers = list(pool.map(ask, rows))
open(out + ".jsonl", "w").write("".join(json.dumps(a) + chr(10) for a in answers))
"""
)

PLAIN = (
    ASKED
    + """
import asyncio, httpx
async def main():
    turn = asyncio.Semaphore(20)
    async with httpx.AsyncClient(timeout=600) as client:
        async def ask(row):
            async with turn:
                answer = await client.post(url + "/chat/completions", json={"model": "judge", "messages": messages(row), "temperature": 0})
            return {**row, **json.loads(answer.json()["choices"][0]["message"]["content"])}
        return await asyncio.gather(*map(ask, rows))
open(out + ".jsonl", "w").write("".join(json.dumps(a) + chr(10) for a in asyncio.run(main())))
"""
)

OURS = """
import sys
from hitmiss.cli.main import run
url, dataset, out, n = sys.argv[1:5]
words = ["llm", "--dataset", dataset, "--models", "judge", "--base-url", url, "-o", out + ".jsonl", "--limit", n]
sys.exit(run([*words, "--max-connections", "20", "--json", *MORE]))
"""
LEAN, THROUGH = OURS.replace("*MORE", ""), OURS.replace("*MORE", '"--provider", "openai-api/hitmiss"')
SCRIPTS = {
    "plain loop (httpx)": PLAIN,
    "plain loop (openai)": OPENAI,
    "inspect_ai alone": BARE,
    "hitmiss llm": LEAN,
    "hitmiss llm, through inspect_ai": THROUGH,
}


def serve(port: multiprocessing.Queue[int]) -> None:
    """Answer every request at once with the same verdict."""
    usage = {"prompt_tokens": 500, "completion_tokens": 30, "total_tokens": 530}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": VERDICT}}
    about = {"id": "a", "object": "chat.completion", "created": 1, "model": "judge-1"}
    body = json.dumps({**about, "choices": [choice], "usage": usage}).encode()
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                await reader.readexactly(int(size.partition(b":")[2]))
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(talk, "127.0.0.1", 0, limit=1 << 24)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def used(script: str, url: str, dataset: Path, n: int) -> tuple[float, float]:
    """Processor seconds and largest MB of one run in a process of its own."""
    tail = "\nimport resource; u = resource.getrusage(resource.RUSAGE_SELF)\nprint('USED', u.ru_utime + u.ru_stime, u.ru_maxrss / 1024)\n"
    body = textwrap.dedent(script).replace("sys.exit(run(", "assert not (run(") + tail
    with tempfile.TemporaryDirectory() as folder:
        homes = {f"XDG_{name}_HOME": folder for name in ("CACHE", "DATA", "CONFIG")}
        words = [sys.executable, "-c", body, url, str(dataset), f"{folder}/out", str(n)]
        said = subprocess.run(words, env={**os.environ, **homes}, check=True, capture_output=True, text=True).stdout
    seconds, memory = said.rpartition("USED ")[2].split()
    return float(seconds), float(memory)


def texts(folder: Path, n: int) -> Path:
    """A dataset of n texts of 60 words."""
    path = folder / f"texts{n}.jsonl"
    words = [f"word{k}" for k in range(97)]
    with path.open("w") as file:
        for i in range(n):
            said = " ".join(words[(i * k + k * k) % 97] for k in range(60))
            file.write(json.dumps({"id": f"t{i}", "text": said, "label": ("real", "fake")[i % 2]}) + "\n")
    return path


def main() -> None:
    """Measure and print the table."""
    from hitmiss.simulate.pictures import write

    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=0)
    many = parser.parse_args().texts
    port: multiprocessing.Queue[int] = multiprocessing.Queue()
    server = multiprocessing.Process(target=serve, args=(port,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{port.get()}/v1"
    print(f"| | start, CPU s | each picture, CPU ms | each text, CPU ms | most memory, MB: 1 text | {TEXTS:,} texts |")
    print("|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        dataset, few = write(folder, share=PICTURES / 120, side=64) / "dataset.jsonl", texts(folder, TEXTS)
        for name, script in SCRIPTS.items():
            one = min(used(script, url, few, 1) for _ in range(LAPS))
            seen = min(used(script, url, dataset, PICTURES) for _ in range(LAPS))
            read = min(used(script, url, few, TEXTS) for _ in range(LAPS))
            each = [1e3 * (seen[0] - one[0]) / (PICTURES - 1), 1e3 * (read[0] - one[0]) / (TEXTS - 1)]
            print(
                f"| {name} | {one[0]:.1f} | {each[0]:.1f} | {each[1]:.1f} | {one[1]:.0f} | {read[1]:.0f} |", flush=True
            )
        if many:
            seconds, memory = used(LEAN, url, texts(folder, many), many)
            print(
                f"\n`hitmiss llm`, {many:,} texts: {1e3 * seconds / many:.1f} ms of CPU each, start included; {memory:,.0f} MB at most."
            )
    server.terminate()


if __name__ == "__main__":
    main()
