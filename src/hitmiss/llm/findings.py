"""What `llm` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "raw-outputs/verdict": Entry(ERROR, "a verdict needs a probability: {--outputs logit} or {--outputs probability}"),
    "three-words": Entry(
        ERROR, "{--positive?}, {--negative?} and {--abstention?} are three different words; found {words}"
    ),
    "no-labels/option": Entry(
        ERROR, "the items have no labels: {option} needs them", fix="leave it out, or add labels to the dataset"
    ),
    "not-varied": Entry(
        ERROR, "{--vary?} takes one setting and its values, as {--vary temperature=0,0.7}; found {text}"
    ),
    "bad-confidence-words": Entry(
        ERROR, "{--confidence-words?} takes words and numbers from 0 to 1, as high=0.9,low=0.6; found {text}"
    ),
    "no-batches": Entry(
        ERROR,
        "{name} takes no batches through inspect_ai",
        fix="leave {--batch?} out, or ask OpenAI, Anthropic, Google, Together or Grok",
    ),
    "one-role": Entry(
        ERROR,
        "{alone} is not a language model and needs no other to see for it",
        fix="ask it in a run without {--vision-model?} and {--structuring-model?}",
    ),
    "no-run": Entry(ERROR, "{--reparse?} reads the answers of a run again, and {place} holds none"),
    "all-failed": Entry(
        ERROR, "all {n_items:,} calls failed: {first_failure}", fix="fix that and run again with {--resume} {--retry}"
    ),
    "model-unavailable": Entry(ERROR, "the model {name} cannot be asked: {why}"),
    "no-api-key": Entry(ERROR, "{--api-key-env?} names {variable}, which is not set in the environment"),
    "picture-too-large": Entry(
        ERROR, "the picture has {width:,} × {height:,} pixels; at most {MOST_PIXELS:,} are taken"
    ),
    "picture-too-large/unopened": Entry(ERROR, "the picture has more than {MOST_PIXELS:,} pixels"),
    "not-a-verdict": Entry(ERROR, "the function gave a {name}; a verdict, a mapping or a probability is expected"),
    "model-refused/detector": Entry(ERROR, "{detector_name}: {error}"),
    "inspect-stopped": Entry(ERROR, "inspect_ai stopped: {why}; what was answered is kept, go on with {--resume}"),
    "bad-models": Entry(ERROR, "{--models?} takes one or more different names without `|`; found {models}"),
    "tools-without-media": Entry(
        ERROR,
        "there are tools for pictures and sounds, and the dataset has neither",
        fix="ask with {--tools no-tools}, or offer your own ({--tool?}, {--mcp?})",
    ),
    "tools-unused": Entry(
        ERROR,
        "{--tool?} and {--mcp?} offer tools, and the models are asked without",
        fix="add {--tools tools} or {--tools both}",
    ),
    "not-a-tool": Entry(ERROR, "{text} cannot be a tool: {why}"),
    "tool-twice": Entry(ERROR, "two tools are called {name}", fix="rename one"),
    "mcp-unavailable": Entry(ERROR, "the MCP server {server} does not answer: {why}"),
    "no-price": Entry(
        ERROR,
        "{--max-cost} cannot be kept: {name} has no price",
        fix="give one by {--prices FILE}, or use {--max-total-tokens}",
    ),
    "bad-prices": Entry(ERROR, '{path_name}: prices look like ["model"], input = 1.25, output = 10'),
    "bad-prices/missing": Entry(ERROR, "{name}: {model} has no price for {kind}"),
    "bad-prices/value": Entry(ERROR, "{name}: {model}: {kind} = {value!r} is no price of {KINDS}"),
    "file-taken": Entry(ERROR, "{target} exists and no run in {place} wrote it", fix="give another {--output?}"),
    "run-finished/rows": Entry(
        ERROR, "{place} holds a finished run", fix="give another {--output?}, or write its rows again with {--resume}"
    ),
    "run-unfinished/reparse": Entry(
        ERROR, "{place}: the run is not finished; go on with {--resume before} {--reparse?}"
    ),
    "empty-sound": Entry(ERROR, "the sound holds no samples"),
    "sound-too-large": Entry(ERROR, "the sound takes more than {MOST_BYTES} MiB as WAV", fix="cut it"),
    "bad-url": Entry(ERROR, "{name} must be an http or https address, as https://host/v1"),
    "bad-url/secret": Entry(
        ERROR, "{name} must hold no user name, password, query or fragment", fix="give a key by {--api-key-env?}"
    ),
    "bad-url/variable": Entry(
        ERROR,
        "the environment variable {name} holds a user name or a password",
        fix="put the key into a variable of its own and name it with {--api-key-env?}",
    ),
    "unreachable/server": Entry(
        ERROR, "there is no server at {host}:{port} ({why}); is the address right, and is it on?"
    ),
    "provider-refused": Entry(ERROR, "the provider refused: {error}"),
    "no-items": Entry(ERROR, "{path_name} holds no item"),
    "changed-item": Entry(ERROR, "the file of item {id} has changed since the dataset was read"),
    "unreadable-file/item": Entry(ERROR, "the file of item {id} cannot be read: {strerror}"),
    "no-canaries": Entry(
        ERROR, "canaries are made of pictures and texts, and with {--tools tools} of sounds; there are none"
    ),
    "bad-canaries": Entry(ERROR, "{--canaries?} takes 0 or more"),
    "unusable-rows": Entry(ERROR, "{file}: {n:rows} of the dataset cannot be used"),
}
