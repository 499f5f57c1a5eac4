"""What `attacks` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, WARNING, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "empty-folder": Entry(ERROR, "there is no sound file {files!r} in the folder {folder}"),
    "other-leads": Entry(
        ERROR, "{family} needs the lead equations of the 12 standard leads ({LEADS}); the data has {leads}"
    ),
    "empty-link": Entry(ERROR, "a chain has something on both sides of >"),
    "bad-quality": Entry(ERROR, "{text}: a quality is a number, as codec(mp3:1)"),
    "wrong-medium": Entry(
        ERROR,
        "{family} changes {medium}, and these are records of signals; `hitmiss list attacks` shows the families for ecg",
    ),
    "bad-pair": Entry(ERROR, "{key} is two numbers, as (0.05, 0.5); found {value!r}"),
    "outputs-unknown": Entry(
        ERROR,
        "all outputs of {name} lie in 0..1: they may be probabilities or logits",
        fix="say which: {--outputs probability} or {--outputs logit}",
    ),
    "raw-outputs/attack": Entry(ERROR, "an attack needs decisions: {--outputs logit} or {--outputs probability}"),
    "one-output": Entry(ERROR, "{name} has one output; classes that exclude each other need two"),
    "labels-unused": Entry(ERROR, "labels are for WFDB records; an .npz has its own in y"),
    "lead-names": Entry(
        ERROR, "leads has {n_found} names ({found}) and x has {width} leads; each needs one of its own"
    ),
    "no-records": Entry(ERROR, "there are no WFDB records in {path_name}{first}"),
    "no-labels": Entry(ERROR, "the headers name no diagnoses (#Dx: …)", fix="say {--labels FILE}"),
    "no-record-column": Entry(ERROR, "{name} has no column {IDS!r}; it has {columns}"),
    "label-rows": Entry(ERROR, "{name} has record {name_2!r}{twice}; each record needs one row"),
    "no-labels/column": Entry(ERROR, "{name} has no column of 0 and 1: one per class is needed"),
    "no-records/2": Entry(ERROR, "there are no records{first}"),
    "other-rate": Entry(
        ERROR, "{model_name} takes {sample_rate:g} samples per second and the data has {fs:g}: resample it"
    ),
    "leads-missing": Entry(ERROR, "{model_name} takes the lead {missing}, and the data has {leads}"),
    "randomised-model": Entry(
        ERROR, "{found}; an attack on it would count its noise. Have it answer the same each time"
    ),
    "leads-unknown": Entry(
        ERROR,
        "the leads are not in the usual order, and {model_name} does not say its own",
        fix="say {--leads standard} ({LEADS}), or {--leads <stored_leads>} as in the data",
    ),
    "leads-missing/takes": Entry(
        ERROR, "{model_name} takes {n_wanted} leads ({wanted}) and the data has {n} without names"
    ),
    "bad-burst": Entry(ERROR, "a rate lies in 0..1 and a burst has 1 packet or more; found {rate} and {burst}"),
    "empty-record": Entry(
        ERROR, "a record holds at least one sample and one lead; found {samples} samples × {leads} leads"
    ),
    "transposed-records": Entry(
        ERROR,
        "records are sample × lead; found {samples} samples × {leads} leads, which look transposed: use layout='lead_sample'",
    ),
    "not-finite/records": Entry(
        ERROR, "{wrong} records hold values that are NaN or infinite, the first at place {first}"
    ),
    "bad-peaks": Entry(ERROR, "R peaks are sample numbers from 0 to {samples}; found {found}"),
    "no-output": Entry(ERROR, "signals are kept in a run folder", fix="say output=…"),
    "target-unused": Entry(
        ERROR, "none of these families can aim at a class: {--target?} is for gradient families and random_search"
    ),
    "other-classes/model": Entry(ERROR, "the model's classes are {classes} and the data's {classes_2}"),
    "no-family": Entry(ERROR, "say what to do: {--family band_noise}, or {--minimal pgd}"),
    "no-strengths": Entry(ERROR, "give strengths: {--strengths?} 0.1 0.2 0.35 0.5"),
    "window-without-center": Entry(ERROR, "a window needs a center: {--center 5}"),
    "run-busy/others": Entry(ERROR, "other processes still work on {output}", fix="read it when they are done"),
    "codec-empty": Entry(ERROR, "{decoder} gave no samples back"),
    "ffmpeg-failed": Entry(ERROR, "ffmpeg failed: {stderr}"),
    "no-codec": Entry(ERROR, "no codec is named in {text!r}", fix="write for instance opus,mp3:1,amr-nb:1+5"),
    "bad-codec-plan": Entry(
        ERROR, "{path_name} is not a codec plan: a table with the columns codec, name, sample_rate, q1 … is expected"
    ),
    "codec-twice": Entry(ERROR, "{path_name}: the codec {twice!r} is there twice"),
    "wrong-medium/items": Entry(
        ERROR, "{attack_name} changes {kind} and the items are {medium}", fix="for these there are {fitting}"
    ),
    "not-text": Entry(ERROR, "a text is needed; found {name}"),
    "reserved-name/clean": Entry(
        ERROR, "{CLEAN!r} is the name of the items as they are", fix="give the manipulation another"
    ),
    "not-a-whole-number": Entry(ERROR, "{key} of {family} is a whole number, 1 or more; found {value!r}"),
    "bad-target": Entry(ERROR, "target_class is the name of a class; found {target_class!r}"),
    "bad-target/mode": Entry(
        ERROR, "target_mode is {target_mode!r} and extra says {told!r}", fix="give only one of them"
    ),
    "bad-target/none": Entry(ERROR, "target_mode {target_mode!r} needs a target_class"),
    "bad-beat": Entry(
        ERROR, "a beat reaches more than 0 ms before and after its peak; found {pre_ms:g} and {post_ms:g}"
    ),
    "bad-stretch": Entry(ERROR, "a stretch by epsilon_max={epsilon_max:g} would turn beats round; it is below 1"),
    "no-frequency": Entry(ERROR, "a record of {samples} samples has no frequency from {low:g} to {high:g} Hz"),
    "bad-band": Entry(ERROR, "a band runs from low to high below {fs:g} Hz; found {low:g} to {high:g}"),
    "bad-attack-signature": Entry(
        ERROR, "attack {name!r} must take (x, strength, rng, *, settings…); it takes {positional}"
    ),
    "bad-strength": Entry(ERROR, "{spec}: the strength must be a number from 0 to 1"),
    "other-leads/count": Entry(ERROR, "the lead equations hold for the 12 standard leads ({LEADS}); found {n_leads}"),
    "bad-search": Entry(
        ERROR, "a search runs from above 0 to 1 in 1 or more rounds; found top {top} and {rounds} rounds"
    ),
    "not-a-model": Entry(
        ERROR, "a {name} is not a model", fix="give something with .predict, a callable or a torch module"
    ),
    "nan-probabilities": Entry(ERROR, "{n} probabilities are NaN, which is neither above nor below a threshold"),
    "bad-threshold/classes": Entry(
        ERROR, "a threshold is one number, or one for each of the {classes} classes; found {size}"
    ),
    "bad-threshold/probability": Entry(ERROR, "thresholds are probabilities, 0 to 1; found {cut}"),
    "no-gradients": Entry(
        ERROR,
        "{family} needs gradients and {name} gives none",
        fix="hand over a torch module (or ONNX, with torch and onnx), or take random_search",
    ),
    "class-values": Entry(ERROR, "class {narrow} of {name} was learned from {shape} values; 0 and 1 are needed"),
    "model-refused": Entry(ERROR, "{name} did not take signals of {shape} ({axes}): {name_2}: {error}"),
    "no-gradients/convolution": Entry(
        ERROR, "a convolution over {axes} axes has no gradients here; attack the torch module"
    ),
    "no-gradients/batchnorm": Entry(
        ERROR, "a BatchNormalization in training mode has no gradients here; export the model for inference"
    ),
    "no-gradients/operators": Entry(
        ERROR, "{name} has no gradients here: its operators {unknown} are not known; attack the torch module"
    ),
    "short-record": Entry(ERROR, "R peaks need a record of at least {SHORTEST:g} s; found {shape:g} s"),
    "bad-peaks/count": Entry(ERROR, "{n_x} records and R peaks of {n_peaks}"),
    "no-truth": Entry(ERROR, "{family} needs y_true, or extra={{'attack_from': 'prediction'}}"),
    "target-unused/any-bit": Entry(ERROR, "hop_skip_jump flips any bit; it cannot aim at a class"),
    "bad-truth/rows": Entry(ERROR, "{n_x} records and {n_y} rows of truth"),
    "bad-truth": Entry(ERROR, "y_true holds 0 and 1; found {wrong:g} ({n_wrong} values are neither)"),
    "attack-twice": Entry(ERROR, "the attack {twice!r} is asked for twice"),
    "powerset-too-large": Entry(ERROR, "the powerset of {shape} classes is too large; at most {MOST_CLASSES}"),
    "class-names/twice": Entry(ERROR, "two classes have one name: {classes}"),
    "reserved-name/column": Entry(
        ERROR, "a column is called {taken!r}, which is what trials call something else", fix="give it another name"
    ),
    "duplicate-id/record": Entry(ERROR, "two records are called {twice!r}; each must have an id of its own"),
    "bad-truth/table": Entry(ERROR, "y must be {n_x} records × {n_classes} classes; found {shape}"),
    "bad-truth/record": Entry(ERROR, "y holds 0 and 1; record {ids!r} has {found} for {name}"),
    "no-array": Entry(ERROR, "{name} has no array {name_2!r}; it has {arrays}"),
    "recordings-refused": Entry(ERROR, "{name}: {error}"),
    "no-array/signals": Entry(ERROR, "{name} has no array 'x' (mV) or 'x_uv' (µV); it has {arrays}"),
    "recordings-refused/layout": Entry(ERROR, "{name}: {how}"),
    "microvolts": Entry(ERROR, "{name}: x is in mV and holds whole numbers only; microvolts are called x_uv"),
    "no-such-attack": Entry(ERROR, "{folder}: {what} {asked}; there are (attack · strength · aim · place) {listed}"),
    "no-such-record": Entry(ERROR, "{folder}: the run has no record {missing!r} ({n_missing} asked for are missing)"),
    "signals-not-kept": Entry(ERROR, "{folder} kept no signals; they are kept with `hitmiss attack … --save-signals`"),
    "damaged-run/signals": Entry(ERROR, "{folder}: {FOLDER}/{name} is missing"),
    "changed-run/signals": Entry(ERROR, "{folder}: {FOLDER}/{name} was changed after the run was finished"),
    "bad-window/center": Entry(
        ERROR, "the center of the window lies at {center_time} s; the record runs from 0 to {n:g} s"
    ),
    "bad-window/empty": Entry(
        ERROR, "a window of {window_seconds} s around {center_time} s holds no sample at {fs:g} a second"
    ),
    "codec-not-here": Entry(ERROR, "{why}"),
    "bad-codec-plan/rate": Entry(ERROR, "{file}, row {row}: a rate is not a number: {error}"),
    "not-plain-arrays": Entry(
        ERROR,
        "{file} is not an .npz of plain arrays, or is damaged",
        fix="make one with numpy.savez(path, x=signals, y=labels, classes=names)",
    ),
    "records-left-out": Entry(WARNING, "{n} of {total} records left out: {parts:;}"),
    "millivolts": Entry(WARNING, "signals reach {highest:,.0f} mV; budgets are in mV: are these microvolts (x_uv)?"),
    "bad-manipulation": Entry(ERROR, "a manipulation is a text as {example} or a callable; found {name}"),
    "bad-quality/range": Entry(ERROR, "{name} has the qualities 1 to {n}; found {found}"),
    "needs-model": Entry(ERROR, "{what} needs a model"),
}
