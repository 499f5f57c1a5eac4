"""What `detection` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ALARM, ERROR, WARNING, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "unreadable-file": Entry(ERROR, "{name} does not hold the weights of this detector"),
    "short-clip": Entry(ERROR, "a clip of {n} samples is shorter than one patch of BEATs ({SHORTEST} samples)"),
    "no-head": Entry(
        ERROR,
        "this checkpoint was only pre-trained: it has no classification head",
        fix="fine-tune it, give a head with {--weights?}, or take {--embed layer.12}",
    ),
    "bad-precision": Entry(ERROR, "BEATs runs in {kinds}; {precision} is not among them"),
    "exclusive-unknown": Entry(
        ERROR,
        "{name} gives logits of {shape} classes, of which one may be true (softmax) or several (a sigmoid each)",
        fix="say {--single-label?} or {--multi-label?}",
    ),
    "other-gradients": Entry(
        ERROR,
        "the network that gives the gradients of {name} is not the model: outputs differ by {apart:.2g} of their size",
        fix="attack the torch module itself",
    ),
    "batch-dependent": Entry(
        ERROR,
        "{name} answers {item!r} differently alone and in a batch of {n} (by {batch:.2g} of its size): a softmax over the batch?",
        fix="correct it, or {instead}",
    ),
    "exclusive-unknown/outputs": Entry(
        ERROR,
        "the outputs of {name} sum to 1, as if one class were true, and record {wrong} of the data has {bits}",
        fix="say {--single-label?} or {--multi-label?}",
    ),
    "not-arrays": Entry(ERROR, "this detector takes sound or pictures, not texts"),
    "int8-nothing": Entry(
        ERROR,
        "int8 would change nothing: the model has less than two products with constant weights in float32 (opset 13 or later), and the last stays",
    ),
    "bad-precision/onnx": Entry(ERROR, "an ONNX model brings its own precision; int8 is possible, {precision} is not"),
    "int8-on-cpu": Entry(ERROR, "int8 runs on the processor; on a GPU leave {--precision?} out"),
    "missing-module": Entry(
        ERROR,
        "{path} imports something that is not there: {error}; modules are looked for in its own folder, in the current one and among installed packages",
    ),
    "users-code": Entry(ERROR, "{what} failed with its own error, {name}: {error} ({name_2}, line {lineno}{line})"),
    "which-output": Entry(
        ERROR,
        "cannot tell which output holds the scores (found {shapes})",
        fix="give one array, or a mapping with a field called {FIELDS}",
    ),
    "outputs-unknown/all": Entry(
        ERROR,
        "all outputs lie in 0..1 and their rows do not sum to 1 (the first to {columns:.4g}): say what they are: {SAY}",
    ),
    "which-class": Entry(ERROR, "the model's classes are {labels}; which of them is {positive!r}? Say {option}"),
    "outputs-unknown/all-lie": Entry(
        ERROR, "all {n_columns} outputs lie in 0..1: they may be probabilities or logits", fix="say which: {SAY}"
    ),
    "no-cuda": Entry(ERROR, "there is no CUDA device here", fix="say {--device cpu}, or leave it out"),
    "int8-on-cpu/runs": Entry(ERROR, "int8 runs on the processor; on a GPU say bfloat16"),
    "tf32-on-cuda": Entry(ERROR, "TF32 is a mode of NVIDIA GPUs; here say float32 or bfloat16"),
    "which-axis": Entry(
        ERROR,
        "layer {name!r} gives {shape} for {n} clips, and nothing shows which axis is time",
        fix="say {--embed <name><AXIS>1} or {--embed <name><AXIS>2}",
    ),
    "int8-nothing/linear": Entry(
        ERROR, "{name} has {n_linear} linear layers; int8 leaves the last in float32, so nothing would change"
    ),
    "two-endings": Entry(ERROR, "the model ended otherwise for this batch than for the first: say outputs=…"),
    "short-clip/frames": Entry(ERROR, "a clip of {n_x} samples is too short for two frames ({FRAME})"),
    "not-beats/variant": Entry(
        ERROR, "only BEATs with gelu and layer norms after each part are supported, as the published ones are"
    ),
    "not-beats/weights": Entry(
        ERROR, "{n_wrong} weights do not fit BEATs, the first is {wrong}: {wanted} expected, {found} found"
    ),
    "not-beats": Entry(ERROR, "{name} is not a BEATs checkpoint: it must hold 'cfg' and 'model'"),
    "no-cuda/cluster": Entry(ERROR, "the cluster has no GPU ({cluster})", fix="say {--device cpu}, or leave it out"),
    "workers-died/all": Entry(
        ERROR,
        "{futile} processes died one after the other ({error}); what was scored is safe",
        fix="{--resume} goes on; try fewer {--actors?} or a smaller {--batch-seconds?}",
    ),
    "worker-records": Entry(ERROR, "a process gave {n_records} records for {n_positions} items"),
    "unlike-machines": Entry(
        ERROR,
        "{host} and {host_2} do not open the same detector: {differing}",
        fix="give {--device?} and {--precision?}, and the same files everywhere",
    ),
    "worker-not-open": Entry(ERROR, "no process of the cluster has the detector open"),
    "workers-died/one": Entry(ERROR, "a process of the cluster died: {error}"),
    "cluster-cannot-open": Entry(
        ERROR,
        "the detector cannot be opened on the cluster: {error}; hitmiss and what the detector needs must be installed on every machine",
    ),
    "not-picklable": Entry(
        ERROR, "worker processes need load and transform to be functions of a module ({error})", fix="use workers=0"
    ),
    "not-a-detector": Entry(ERROR, "a {name} is not a detector", fix="give a function, an estimator or a torch module"),
    "no-layers": Entry(ERROR, "{name} has no layers to take embeddings from; a torch or ONNX model has"),
    "no-score-method": Entry(ERROR, "{name} has none of {METHODS}; a score needs one of them"),
    "layer-changed": Entry(ERROR, "layer {name!r} had {widths} dimensions and now has {n_row}"),
    "all-failed/items": Entry(ERROR, "all {n_failures:,} items failed; the first is {failures!r}: {failures_2}"),
    "empty-clip": Entry(ERROR, "an empty clip cannot be brought to a length"),
    "no-windows": Entry(ERROR, "there are no window scores to pool"),
    "no-generator": Entry(ERROR, "a random crop needs a generator: rng=…, one per clip"),
    "no-labels/manifest": Entry(
        ERROR, "the manifest has no labels, so there are no trials", fix="use run_detector, and score with a key"
    ),
    "which-output/onnx": Entry(ERROR, "{name} has the outputs {names}", fix="name the one with the scores 'logits'"),
    "not-a-model/onnx": Entry(ERROR, "{path_name} is not a model that onnxruntime can run: {error}"),
    "not-a-detector/text": Entry(ERROR, "{text!r} is not a detector", fix="write one of {kinds}"),
    "missing-module/name": Entry(ERROR, "{place} has no {name!r}"),
    "missing-module/detector": Entry(ERROR, "{place!r} cannot be imported: {error}; a detector is one of {kinds}"),
    "not-probabilities/outputs": Entry(ERROR, "{wrong} outputs are not probabilities, the first is {columns:g}"),
    "no-program/command": Entry(ERROR, "write the command after program:, as program:'python score.py'"),
    "no-program": Entry(ERROR, "there is no program {words!r} on this machine"),
    "program-says": Entry(ERROR, "the program says: {wrong}"),
    "program-ids": Entry(ERROR, "{name} answered about {answers}, {n_lines} ids were asked"),
    "program-ended": Entry(ERROR, "{name} ended in the middle of the work: {self_2}"),
    "program-line": Entry(ERROR, '{name} wrote {shown!r}; a line {{"id": 0, "output": [...]}} was expected'),
    "output-widths": Entry(ERROR, "the detector gave outputs of different widths: {widths}"),
    "weights-unfit": Entry(
        ERROR,
        "{name} does not fit {name_2}: {n_missing} weights are missing ({missing}), {n_extra} are unknown ({extra})",
    ),
    "unsafe-checkpoint": Entry(
        ERROR,
        "{path_name} holds more than weights, and loading it would run code: {first} Save its state_dict as .safetensors where you trust it",
    ),
    "weights-unfit/error": Entry(ERROR, "{name} does not fit: {error}"),
    "not-transformers": Entry(ERROR, "{place} is no {kind} model of transformers: {error}"),
    "scores-reversed": Entry(
        ALARM,
        "the scores look REVERSED: ROC AUC {PairShare:.4f} [{low:.4f}, {high:.4f}]; nothing was flipped",
        fix="say what is {positive}: {--positive-index?}, or {--higher <negative>}",
    ),
    "weights-unused": Entry(ERROR, "{what} does not use {--weights?}", fix="leave it out"),
    "layers-unused": Entry(ERROR, "{what} does not use {--embed?}", fix="leave it out"),
    "precision-unused": Entry(ERROR, "{what} does not use {--precision?}", fix="leave it out"),
    "compiled-unused": Entry(ERROR, "{what} does not use {--compile?}", fix="leave it out"),
    "scores-saturated": Entry(
        WARNING,
        "{ends} of the scores are tied at the ends ({low:g} and {high:g}): the outputs saturate, so their order is lost",
        fix="have the model give logits",
    ),
    "on-machine": Entry(ERROR, "on {machine}: {found}"),
    "no-weights": Entry(ERROR, "{file} holds a {found}, no weights by name"),
}
