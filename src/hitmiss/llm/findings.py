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
    "one-role": Entry(
        ERROR,
        "{alone} is not a language model and needs no other to see for it",
        fix="ask it in a run without {--vision-model?} and {--structuring-model?}",
    ),
    "no-run": Entry(ERROR, "{--reparse?} reads the answers of a run again, and {place} holds none"),
    "all-failed": Entry(
        ERROR, "all {n_items:,} calls failed: {first_failure}", fix="fix that and run again with {--resume} {--retry}"
    ),
    "model-cannot-asked": Entry(ERROR, "the model {name} cannot be asked: {why}"),
    "names-not-set-environment": Entry(ERROR, "{--api-key-env?} names {variable}, which is not set in the environment"),
    "picture-pixels-most-taken": Entry(
        ERROR, "the picture has {width:,} × {height:,} pixels; at most {MOST_PIXELS:,} are taken"
    ),
    "picture-more-pixels": Entry(ERROR, "the picture has more than {MOST_PIXELS:,} pixels"),
    "picture-cannot-opened": Entry(ERROR, "the picture cannot be opened: {why}"),
    "picture-cannot-decoded": Entry(ERROR, "the picture cannot be decoded: {error}"),
    "takes-lower-number-first": Entry(
        ERROR, "{--thresholds?} takes the lower number first; found {thresholds:g} {thresholds_2:g}"
    ),
    "function-gave-verdict-mapping": Entry(
        ERROR, "the function gave a {name}; a verdict, a mapping or a probability is expected"
    ),
    "not-probability-fake": Entry(ERROR, "{p:g} is not a probability of fake"),
    "refused-4": Entry(ERROR, "{detector_name}: {error}"),
    "inspect-ai-stopped-answered": Entry(
        ERROR, "inspect_ai stopped: {why}; what was answered is kept, go on with {--resume}"
    ),
    "takes-more": Entry(ERROR, "{--trials?} takes 1 or more; found {trials}"),
    "takes-more-different-names": Entry(
        ERROR, "{--models?} takes one or more different names without `|`; found {models}"
    ),
    "tools-pictures-sounds-dataset": Entry(
        ERROR, "there are tools for pictures and sounds, and the dataset has neither", fix="ask with {--tools no-tools}"
    ),
    "prices-look-like-model": Entry(ERROR, '{path_name}: prices look like ["model"], input = 1.25, output = 10'),
    "no-2": Entry(ERROR, "{path_name} is no {part}: {error}"),
    "no-price": Entry(ERROR, "{name}: {model} has no price for {kind}"),
    "no-price-2": Entry(ERROR, "{name}: {model}: {kind} = {value!r} is no price of {KINDS}"),
    "exists-no-run-wrote": Entry(
        ERROR, "{target} exists and no run in {place} wrote it", fix="give another {--output?}"
    ),
    "holds-finished-run": Entry(
        ERROR, "{place} holds a finished run", fix="give another {--output?}, or write its rows again with {--resume}"
    ),
    "run-not-finished-go-2": Entry(
        ERROR, "{place}: the run is not finished; go on with {--resume before} {--reparse?}"
    ),
    "sound-cannot-opened": Entry(ERROR, "the sound cannot be opened: {why}"),
    "sound-holds-no-samples": Entry(ERROR, "the sound holds no samples"),
    "sound-holds-samples-nan": Entry(ERROR, "the sound holds samples that are NaN or infinite"),
    "sound-takes-more-mib": Entry(ERROR, "the sound takes more than {MOST_BYTES} MiB as WAV", fix="cut it"),
    "sound-cannot-decoded": Entry(ERROR, "the sound cannot be decoded: {why}"),
    "http-https-address-https": Entry(ERROR, "{name} must be an http or https address, as https://host/v1"),
    "hold-no-user-name": Entry(
        ERROR, "{name} must hold no user name, password, query or fragment", fix="give a key by {--api-key-env?}"
    ),
    "environment-variable-holds-user": Entry(
        ERROR,
        "the environment variable {name} holds a user name or a password",
        fix="put the key into a variable of its own and name it with {--api-key-env?}",
    ),
    "no-server-address-right": Entry(
        ERROR, "there is no server at {host}:{port} ({why}); is the address right, and is it on?"
    ),
    "provider-refused": Entry(ERROR, "the provider refused: {error}"),
    "takes-more-2": Entry(ERROR, "{--limit?} takes 1 or more; found {limit}"),
    "holds-no-item": Entry(ERROR, "{path_name} holds no item"),
    "file-item-changed-since": Entry(ERROR, "the file of item {id} has changed since the dataset was read"),
    "not-utf-text-byte": Entry(ERROR, "{path_name} is not UTF-8 text (byte {start})", fix="save it as UTF-8"),
    "file-item-cannot-read": Entry(ERROR, "the file of item {id} cannot be read: {strerror}"),
    "no-canaries": Entry(ERROR, "canaries are made of pictures and texts; there are none"),
    "bad-canaries": Entry(ERROR, "{--canaries?} takes 0 or more"),
    "unusable-rows": Entry(ERROR, "{file}: {n:rows} of the dataset cannot be used"),
}
