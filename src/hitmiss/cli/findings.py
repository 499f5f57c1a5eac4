"""What `cli` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "model-exited": Entry(
        ERROR, "the code of the model ended the program (exit code {code_2}); have it raise an error instead"
    ),
    "fitted-already": Entry(ERROR, "{--model?} uses a stored fit", fix="leave {--save?} and {--apply?} out"),
    "other-systems/fit": Entry(
        ERROR,
        "the fit has {n_systems} systems and {n_others} files were given",
        fix="give one for each, in the same order",
    ),
    "one-run/give": Entry(
        ERROR, "give two runs or more, or one file that holds several (a run column or two {--score-column?})"
    ),
    "not-a-language-model": Entry(ERROR, "{role} takes a language model; {name} is a function or a detector"),
    "usage": Entry(ERROR, "{word} needs a value after it"),
    "given-twice": Entry(
        ERROR, "{long} takes one value and has two, {before!r} and {value!r}", fix="leave one of them out"
    ),
    "given-twice/contradict": Entry(ERROR, "{both} contradict each other", fix="leave one of them out"),
    "settings-exist": Entry(ERROR, "{output} is there already; {--force} replaces it, {-o?} writes another"),
    "stdin-twice": Entry(ERROR, "init reads files more than once", fix="save what stdin gives first"),
    "no-key/say-where": Entry(ERROR, "say where the keys are: {--keys FOLDER}, or give a board.toml"),
    "keys-twice": Entry(ERROR, "{submissions} names its keys", fix="leave {--keys?} out"),
    "no-address": Entry(ERROR, "{--arena?} needs {--arena-url?} and {--scores-url?}, which its files state"),
    "several-runs/thresholds": Entry(ERROR, "thresholds are chosen for one run at a time", fix="give the rows of one"),
    "several-rules": Entry(ERROR, "give only one of {--thresholds?}, {--least-confidence?} and {--choose?}"),
    "no-thresholds": Entry(ERROR, "no pair of thresholds meets the target: {reason}"),
    "least-confidences": Entry(
        ERROR, "{--least-confidence?} takes one number, or one for real and one for fake; found {n_least}"
    ),
    "no-verdicts": Entry(
        ERROR, "there are scores and no verdicts", fix="give {--thresholds?} LOW HIGH, or {--choose guarantee}"
    ),
    "no-least-confidence": Entry(ERROR, "no least confidence meets the target: {reason}"),
    "no-costs": Entry(ERROR, "{--choose?} cost needs {--costs?} SLIP FALSE_FLAG LOOK, as 20 5 1"),
    "no-looks": Entry(
        ERROR, "{--choose?} budget needs {--looks?}, as 50/1000 (of 1000 items 50 are looked at); found {looks!r}"
    ),
    "files-and-folder": Entry(
        ERROR, "give files, or {--pred_dir?} and {--run_tag?}, not both; {words} was taken for a file"
    ),
    "threshold-metric": Entry(
        ERROR,
        "evaluation.threshold_metric is {threshold_metric!r}, which no threshold changes",
        fix="name a metric of decisions, as f1",
    ),
    "key-of-run": Entry(ERROR, "{--key?} and {--label-cut go} with files given by name, not with {--pred_dir?}"),
    "no-predictions/say": Entry(
        ERROR, "say where the predictions are: {--pred_dir DIR} {--run_tag TAG}, or files with a language column"
    ),
    "group-of-files": Entry(
        ERROR, "{--group?} is for files in which a column names the group; with {--run_tag?} the file names do"
    ),
    "overwrites-input": Entry(ERROR, "{output} holds predictions that were read", fix="write to another file"),
    "group-of-files/about": Entry(
        ERROR, "{--missing_language?} is about files named after languages; here a column names them"
    ),
    "job-cannot-run": Entry(ERROR, "the job {step_name} cannot run here: {advice}"),
    "name-unused": Entry(ERROR, "{--name?} is the detector's name in the file of {--rates}", fix="add {--rates FILE}"),
    "one-rate": Entry(ERROR, "{--sensitivity?} and {--specificity?} go together"),
    "rates-twice": Entry(
        ERROR, "{--detector?} states the rates", fix="leave {--sensitivity?} and {--specificity?} out"
    ),
    "bad-where": Entry(ERROR, "{--where?} takes COLUMN=VALUE; found {bad!r}"),
    "no-rates/option": Entry(ERROR, "{--rates?} needs the detector's rates"),
    "bad-unit/probe": Entry(ERROR, "a probe draws one unit; found {unit}"),
    "bad-number-of-group": Entry(
        ERROR, "{text!r} is not a number, or is one too many", fix="write 0.8, or GROUP=0.8 for every group"
    ),
    "no-test-files": Entry(ERROR, "say which files get the thresholds: {--test?} FILE …"),
    "bad-lease": Entry(ERROR, "{--per-item?} must be at least 1 and {--lease?} above 0"),
    "no-results/given": Entry(ERROR, "give the results to export: the file that `hitmiss score … -o FILE` wrote"),
    "no-format": Entry(
        ERROR,
        "give a format: {--to latex|markdown|csv|xlsx|json|model-card}, or an {-o?} that ends in .tex, .md, .csv, .xlsx",
    ),
    "workbook-unprinted": Entry(ERROR, "a workbook cannot be printed", fix="write it with {-o FILE.xlsx}"),
    "machine-unfit": Entry(ERROR, "this machine needs attention: {broken}"),
    "claim-differs": Entry(ERROR, "the claim does not hold: {n_differences} differences"),
    "no-scores/give": Entry(ERROR, "give the score files that the claim was made from, or {--signers?}"),
    "no-plan": Entry(ERROR, "say what to plan for: {--width 0.02}, or {--difference 0.01}"),
    "no-pilot": Entry(ERROR, "without a pilot, say the metric and the value that you expect: {-m eer} {--value 0.05}"),
    "pilot-runs": Entry(ERROR, "a width is planned from one pilot run, a difference from two on the same trials"),
    "bare-pilot": Entry(
        ERROR, "no number of the pilot has an interval to plan from", fix="add {--bootstrap 1000}, or give more trials"
    ),
    "bare-pilot/why": Entry(
        ERROR,
        "no number of the pilot has an interval to plan from ({metric}: {why})",
        fix="give a pilot of more units or trials, or plan from {--value?}",
    ),
    "option-unused/score-form": Entry(ERROR, "{--score-form?} goes with {--scores?}"),
    "devices-cluster": Entry(ERROR, "{--cluster?} distributes the work itself", fix="give one {--device?}"),
    "option-unused/actors": Entry(ERROR, "{--actors?} goes with {--cluster?}"),
}
