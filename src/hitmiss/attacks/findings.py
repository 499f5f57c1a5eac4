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
    "missing-file": Entry(ERROR, "there is no codec {place}"),
    "codec-output": Entry(ERROR, "{name} gave the shape {shape} back, not one channel"),
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
    "rate-lies-burst-packet": Entry(
        ERROR, "a rate lies in 0..1 and a burst has 1 packet or more; found {rate} and {burst}"
    ),
    "rate-1000-more": Entry(ERROR, "the rate must be 1000 or more; found {rate}"),
    "share-fade-runs": Entry(ERROR, "the share of a fade runs from 0 to 0.5; found {share}"),
    "rate-lie-between-clip": Entry(
        ERROR, "the rate must lie between 0 and the clip's own, {sample_rate}; found {rate}"
    ),
    "tempo-above": Entry(ERROR, "a tempo is above 0; found {factor}"),
    "manipulation-text-noise-snr": Entry(
        ERROR, "a manipulation is a text as noise(snr=15) or a callable; found {name}"
    ),
    "give-channel-samples": Entry(ERROR, "{name} must give one channel with samples in it; found the shape {shape}"),
    "made-samples-nan-infinite": Entry(ERROR, "{name} made samples that are NaN or infinite"),
    "above-seconds": Entry(ERROR, "the {what} must be above 0 seconds; found {seconds}"),
    "signals-record-sample-lead": Entry(ERROR, "signals are record × sample × lead; found the shape {shape}"),
    "record-holds-least-sample": Entry(
        ERROR, "a record holds at least one sample and one lead; found {samples} samples × {leads} leads"
    ),
    "records-sample-lead": Entry(
        ERROR,
        "records are sample × lead; found {samples} samples × {leads} leads, which look transposed: use layout='lead_sample'",
    ),
    "records-hold-values-nan": Entry(
        ERROR, "{wrong} records hold values that are NaN or infinite, the first at place {first}"
    ),
    "signals-numbers": Entry(ERROR, "signals are numbers; found {dtype}"),
    "peaks-sample-numbers": Entry(ERROR, "R peaks are sample numbers from 0 to {samples}; found {found}"),
    "made-values-not-finite": Entry(ERROR, "{name} made values that are not finite"),
    "signals-numbers-regular-array": Entry(
        ERROR, "signals are numbers in a regular array; found something else among them"
    ),
    "signals-kept-run-folder": Entry(ERROR, "signals are kept in a run folder", fix="say output=…"),
    "none-families-aim-class": Entry(
        ERROR, "none of these families can aim at a class: {--target?} is for gradient families and random_search"
    ),
    "model-classes-data": Entry(ERROR, "the model's classes are {classes} and the data's {classes_2}"),
    "say": Entry(ERROR, "say what to do: {--family band_noise}, or {--minimal pgd}"),
    "give-strengths-35": Entry(ERROR, "give strengths: {--strengths?} 0.1 0.2 0.35 0.5"),
    "window-needs-centre": Entry(ERROR, "a window needs a center: {--center 5}"),
    "other-processes-still-work": Entry(
        ERROR, "other processes still work on {output}", fix="read it when they are done"
    ),
    "least": Entry(ERROR, "{option} is at least {least}; found {value}"),
    "gave-no-samples-back": Entry(ERROR, "{decoder} gave no samples back"),
    "ffmpeg-failed": Entry(ERROR, "ffmpeg failed: {stderr}"),
    "no-codec-named": Entry(ERROR, "no codec is named in {text!r}", fix="write for instance opus,mp3:1,amr-nb:1+5"),
    "no-codec-plan": Entry(ERROR, "no codec plan {path_name}"),
    "not-codec-plan-table": Entry(
        ERROR, "{path_name} is not a codec plan: a table with the columns codec, name, sample_rate, q1 … is expected"
    ),
    "codec-twice": Entry(ERROR, "{path_name}: the codec {twice!r} is there twice"),
    "qualities": Entry(ERROR, "the qualities of {codec_name} are 1 to {n_kbps}; found {text!r}"),
    "codec-takes-channel-samples": Entry(
        ERROR, "a codec takes one channel with samples in it; found the shape {shape}"
    ),
    "qualities-2": Entry(ERROR, "{name} has the qualities 1 to {n_kbps}; found {quality}"),
    "changes-items": Entry(
        ERROR, "{attack_name} changes {kind} and the items are {medium}", fix="for these there are {fitting}"
    ),
    "text-needed": Entry(ERROR, "a text is needed; found {name}"),
    "picture-height-width-without": Entry(
        ERROR, "a picture is height × width, with or without channels; found the shape {shape}"
    ),
    "manipulation-text-typos-rate": Entry(
        ERROR, "a manipulation is a text as typos(rate=0.1) or a callable; found {name}"
    ),
    "name-items": Entry(ERROR, "{CLEAN!r} is the name of the items as they are", fix="give the manipulation another"),
    "number-more": Entry(ERROR, "{key} of {family} is a number, 0 or more; found {value!r}"),
    "whole-number-more": Entry(ERROR, "{key} of {family} is a whole number, 1 or more; found {value!r}"),
    "target-class-name-class": Entry(ERROR, "target_class is the name of a class; found {target_class!r}"),
    "target-mode-extra-says": Entry(
        ERROR, "target_mode is {target_mode!r} and extra says {told!r}", fix="give only one of them"
    ),
    "target-mode-needs-target": Entry(ERROR, "target_mode {target_mode!r} needs a target_class"),
    "leads-lost": Entry(ERROR, "of {n_leads} leads 1 to {n_leads} can be lost; found {leads}"),
    "beat-reaches-more-ms": Entry(
        ERROR, "a beat reaches more than 0 ms before and after its peak; found {pre_ms:g} and {post_ms:g}"
    ),
    "stretch-epsilon-max-turn": Entry(
        ERROR, "a stretch by epsilon_max={epsilon_max:g} would turn beats round; it is below 1"
    ),
    "record-samples-no-frequency": Entry(
        ERROR, "a record of {samples} samples has no frequency from {low:g} to {high:g} Hz"
    ),
    "band-runs-low-high": Entry(ERROR, "a band runs from low to high below {fs:g} Hz; found {low:g} to {high:g}"),
    "attack-take-strength-rng": Entry(
        ERROR, "attack {name!r} must take (x, strength, rng, *, settings…); it takes {positional}"
    ),
    "strength-number": Entry(ERROR, "{spec}: the strength must be a number from 0 to 1"),
    "strength-number-2": Entry(ERROR, "the strength of {name} is a number from 0 to 1; found {strength!r}"),
    "strength-runs": Entry(ERROR, "the strength of {name} runs from 0 to 1; found {strength}"),
    "strength-made-values": Entry(ERROR, "{name} at strength {strength:g} made values that are not finite"),
    "factor-contrast-more": Entry(ERROR, "a factor of contrast is 0 or more; found {factor}"),
    "jpeg-quality-runs-95": Entry(ERROR, "a JPEG quality runs from 1 to 95; found {quality}"),
    "image-height-width-without": Entry(
        ERROR, "an image is height × width, with or without channels; found the shape {shape}"
    ),
    "jpeg-needs-pillow-pip": Entry(ERROR, "jpeg needs Pillow ({error}): pip install 'hitmiss[image]'"),
    "lead-equations-hold-12": Entry(
        ERROR, "the lead equations hold for the 12 standard leads ({LEADS}); found {n_leads}"
    ),
    "search-runs-above-more": Entry(
        ERROR, "a search runs from above 0 to 1 in 1 or more rounds; found top {top} and {rounds} rounds"
    ),
    "not-model": Entry(
        ERROR, "a {name} is not a model", fix="give something with .predict, a callable or a torch module"
    ),
    "probabilities-nan-neither-above": Entry(
        ERROR, "{n} probabilities are NaN, which is neither above nor below a threshold"
    ),
    "threshold-number-classes": Entry(
        ERROR, "a threshold is one number, or one for each of the {classes} classes; found {size}"
    ),
    "thresholds-probabilities": Entry(ERROR, "thresholds are probabilities, 0 to 1; found {cut}"),
    "gave-shape-records-row": Entry(
        ERROR, "{name} gave the shape {shape} for {n_x} records; one row per record is needed"
    ),
    "gave-values-not-finite": Entry(ERROR, "{name} gave values that are not finite"),
    "give-probabilities-gave": Entry(ERROR, "{name} is to give probabilities and gave {outputs:g} to {outputs_2:g}"),
    "needs-gradients-gives-none": Entry(
        ERROR,
        "{family} needs gradients and {name} gives none",
        fix="hand over a torch module (or ONNX, with torch and onnx), or take random_search",
    ),
    "class-learned-values-needed": Entry(
        ERROR, "class {narrow} of {name} was learned from {shape} values; 0 and 1 are needed"
    ),
    "not-take-signals": Entry(ERROR, "{name} did not take signals of {shape} ({axes}): {name_2}: {error}"),
    "convolution-over-axes": Entry(
        ERROR, "a convolution over {axes} axes has no gradients here; attack the torch module"
    ),
    "batchnormalization-training-mode": Entry(
        ERROR, "a BatchNormalization in training mode has no gradients here; export the model for inference"
    ),
    "no-gradients-here-operators": Entry(
        ERROR, "{name} has no gradients here: its operators {unknown} are not known; attack the torch module"
    ),
    "peaks-need-record-least": Entry(ERROR, "R peaks need a record of at least {SHORTEST:g} s; found {shape:g} s"),
    "records-configurations-generators-needed": Entry(
        ERROR, "{n} records, {n_configs} configurations and {n_rngs} generators; one each is needed"
    ),
    "search-least-strengths-needs": Entry(ERROR, "a search for least strengths needs a model"),
    "sample-rate-number-samples": Entry(
        ERROR, "a sample rate is a number of samples per second above 0; found fs={fs}"
    ),
    "records-peaks": Entry(ERROR, "{n_x} records and R peaks of {n_peaks}"),
    "needs-model": Entry(ERROR, "this needs a model"),
    "model-gives-outputs-classes-2": Entry(
        ERROR, "the model gives {width} outputs and {n_classes} classes are named", fix="name each: classes=…"
    ),
    "needs-model-2": Entry(ERROR, "{family} needs a model"),
    "needs-true-extra": Entry(ERROR, "{family} needs y_true, or extra={{'attack_from': 'prediction'}}"),
    "hop-skip-jump-flips": Entry(ERROR, "hop_skip_jump flips any bit; it cannot aim at a class"),
    "records-rows-truth": Entry(ERROR, "{n_x} records and {n_y} rows of truth"),
    "true-holds-found-values": Entry(ERROR, "y_true holds 0 and 1; found {wrong:g} ({n_wrong} values are neither)"),
    "attack-asked-twice": Entry(ERROR, "the attack {twice!r} is asked for twice"),
    "powerset-classes-too-large": Entry(ERROR, "the powerset of {shape} classes is too large; at most {MOST_CLASSES}"),
    "not-say-sample-rate": Entry(ERROR, "{name} does not say its sample rate", fix="say {--fs?}"),
    "classes-name": Entry(ERROR, "two classes have one name: {classes}"),
    "column-called-trials-call": Entry(
        ERROR, "a column is called {taken!r}, which is what trials call something else", fix="give it another name"
    ),
    "records-called-id-own": Entry(ERROR, "two records are called {twice!r}; each must have an id of its own"),
    "records-classes": Entry(ERROR, "y must be {n_x} records × {n_classes} classes; found {shape}"),
    "holds-record": Entry(ERROR, "y holds 0 and 1; record {ids!r} has {found} for {name}"),
    "no-array": Entry(ERROR, "{name} has no array {name_2!r}; it has {arrays}"),
    "refused": Entry(ERROR, "{name}: {error}"),
    "no-array-mv-uv": Entry(ERROR, "{name} has no array 'x' (mV) or 'x_uv' (µV); it has {arrays}"),
    "refused-2": Entry(ERROR, "{name}: {how}"),
    "mv-holds-whole-numbers": Entry(
        ERROR, "{name}: x is in mV and holds whole numbers only; microvolts are called x_uv"
    ),
    "attack-strength-aim-place": Entry(
        ERROR, "{folder}: {what} {asked}; there are (attack · strength · aim · place) {listed}"
    ),
    "run-no-record-asked": Entry(
        ERROR, "{folder}: the run has no record {missing!r} ({n_missing} asked for are missing)"
    ),
    "run-not-finished-go": Entry(ERROR, "{folder}: the run is not finished ({state}); go on with {--resume}"),
    "kept-no-signals-kept": Entry(
        ERROR, "{folder} kept no signals; they are kept with `hitmiss attack … --save-signals`"
    ),
    "missing": Entry(ERROR, "{folder}: {FOLDER}/{name} is missing"),
    "changed-after-run-finished": Entry(ERROR, "{folder}: {FOLDER}/{name} was changed after the run was finished"),
    "window-longer-seconds": Entry(ERROR, "a window is longer than 0 seconds; found {window_seconds}"),
    "centre-window-lies-record": Entry(
        ERROR, "the center of the window lies at {center_time} s; the record runs from 0 to {n:g} s"
    ),
    "window-around-holds": Entry(
        ERROR, "a window of {window_seconds} s around {center_time} s holds no sample at {fs:g} a second"
    ),
    "windows-overlap-more-less": Entry(ERROR, "windows overlap by 0 or more and less than 1; found {overlap}"),
    "window-not-fit-into": Entry(ERROR, "a window of {window_seconds} s does not fit into a record of {n:g} s"),
    "gives-outputs-data-classes": Entry(
        ERROR, "{model_name} gives {width} outputs and the data has {n_classes} classes"
    ),
    "codec-not-here": Entry(ERROR, "{why}"),
    "bad-plan/rate": Entry(ERROR, "{file}, row {row}: a rate is not a number: {error}"),
    "not-plain-arrays": Entry(
        ERROR,
        "{file} is not an .npz of plain arrays, or is damaged",
        fix="make one with numpy.savez(path, x=signals, y=labels, classes=names)",
    ),
    "records-left-out": Entry(WARNING, "{n} of {total} records left out: {parts:;}"),
    "millivolts": Entry(WARNING, "signals reach {highest:,.0f} mV; budgets are in mV: are these microvolts (x_uv)?"),
}
