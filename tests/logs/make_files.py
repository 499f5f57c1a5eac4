"""Make the files of this folder with the tools themselves: `python make_files.py FOLDER inspect_ai lm-eval promptfoo`.

Each tool runs in an environment of its own, named by a variable, and asks the server of answering.py:

    inspect_ai   this Python                            inspect_ai 0.3.285
    lm-eval      LM_EVAL=…/bin/lm_eval                  pip install 'lm_eval[api]==0.4.13'
    promptfoo    PROMPTFOO=…/node_modules/.bin/promptfoo   npm install promptfoo@0.118.0
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from answering import QUESTIONS, serve, truth


def with_inspect(url: str, folder: Path) -> None:
    """One log per model, two epochs."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import get_model
    from inspect_ai.scorer import match

    samples = [Sample(id=f"q{n}", input=f"question {n}", target=truth(n)) for n in range(QUESTIONS)]
    for name in ("a", "b"):
        with tempfile.TemporaryDirectory() as logs:
            model = get_model(f"openai-api/table/{name}", base_url=url, api_key="none")
            task = Task(dataset=samples, scorer=match(), name="table")
            eval(task, model=model, log_dir=logs, display="none", log_realtime=False, log_model_api=False)
            [made] = Path(logs).glob("*.eval")
            shutil.copy(made, folder / f"inspect_{name}.eval")


TASK = """task: table
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["\\n"], max_gen_toks: 8}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
metadata: {{version: 1.0}}
"""


def with_lm_eval(url: str, folder: Path) -> None:
    """One folder per model."""
    with tempfile.TemporaryDirectory() as place:
        data = Path(place, "table.jsonl")
        rows = [{"question": f"question {n}", "answer": truth(n)} for n in range(QUESTIONS)]
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        Path(place, "table.yaml").write_text(TASK.format(data=data))
        for name in ("a", "b"):
            args = f"model={name},base_url={url}/chat/completions,num_concurrent=1,tokenized_requests=False"
            words = ["--model", "local-chat-completions", "--model_args", args, "--tasks", "table", "--log_samples"]
            more = ["--include_path", place, "--apply_chat_template", "--output_path", f"{place}/{name}"]
            env = {**os.environ, "OPENAI_API_KEY": "none", "HF_HOME": place, "HF_DATASETS_OFFLINE": "0"}
            subprocess.run([os.environ["LM_EVAL"], *words, *more], check=True, env=env, cwd=place)
            shutil.rmtree(folder / f"lm_eval_{name}", ignore_errors=True)
            target = folder / f"lm_eval_{name}" / name
            target.mkdir(parents=True)
            for made in Path(place, name).rglob("*.json*"):
                text = made.read_text().replace(place, "PLACE")
                if made.suffix == ".json":  # without what it says about the machine
                    told = json.loads(text)
                    text = json.dumps({k: v for k, v in told.items() if k not in ("pretty_env_info", "upper_git_hash")})
                (target / made.name).write_text(text)


def with_promptfoo(url: str, folder: Path) -> None:
    """One file per model."""
    for name in ("a", "b"):
        with tempfile.TemporaryDirectory() as place:
            tests = [
                {"vars": {"n": str(n)}, "assert": [{"type": "equals", "value": truth(n)}]} for n in range(QUESTIONS)
            ]
            provider = {"id": f"openai:chat:{name}", "config": {"apiBaseUrl": url, "apiKey": "none"}}
            config = {"prompts": ["question {{n}}"], "providers": [provider], "tests": tests}
            Path(place, "promptfooconfig.json").write_text(json.dumps(config))
            env = {
                **os.environ,
                "PROMPTFOO_CONFIG_DIR": place,
                "PROMPTFOO_DISABLE_TELEMETRY": "1",
                "PROMPTFOO_DISABLE_UPDATE": "1",
                "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
            }
            words = ["eval", "-c", "promptfooconfig.json", "-o", "out.json", "--no-cache", "--no-progress-bar"]
            subprocess.run([os.environ["PROMPTFOO"], *words], env=env, cwd=place)  # failed tests are exit code 100
            made = json.loads(Path(place, "out.json").read_text())
            (folder / f"promptfoo_{name}.json").write_text(json.dumps(made))


TOOLS = {"inspect_ai": with_inspect, "lm-eval": with_lm_eval, "promptfoo": with_promptfoo}


def main(folder: str, *tools: str) -> None:
    """Make the files of these tools."""
    server = serve()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Path(folder).mkdir(exist_ok=True)
    for tool in tools:
        TOOLS[tool](f"http://127.0.0.1:{server.server_address[1]}/v1", Path(folder).resolve())


if __name__ == "__main__":
    main(*sys.argv[1:])
