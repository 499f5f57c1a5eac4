"""What `reports` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, WARNING, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "report-order": Entry(
        ERROR,
        "the runs come first and the file after them, as hm.report(results, 'report.html'); found a {name} as the file",
    ),
    "report-kind": Entry(
        ERROR, "a report is an HTML file, and {path} is not", fix="write {html}; {--pdf FILE} prints it as PDF as well"
    ),
    "nothing-to-draw": Entry(ERROR, "there is nothing to draw: no row has a number"),
    "both-labels/items": Entry(
        ERROR,
        "{item:,} items have two labels, the first is {item_2!r}: {told}; an item has one label: correct the files, or report on them one by one",
    ),
    "malformed-pictures": Entry(ERROR, "its pictures are not of the form that hitmiss writes: {error}"),
    "no-probe": Entry(ERROR, "these results hold no probe_accuracy", fix="make them with `hitmiss probe`"),
    "no-submission/file": Entry(ERROR, "the submission has no file for {missing}; it needs one named like each key"),
    "unused-human": Entry(ERROR, "{--human <name>}: no run here is a triage of the items that people judged"),
    "no-results/folder": Entry(
        ERROR, "the folder {folder_name} holds no results", fix="write some there with `hitmiss score … -o`"
    ),
    "no-results/holds": Entry(
        ERROR, "{name} holds no results; a report takes what `hitmiss score -o` writes, or score files"
    ),
    "no-figures": Entry(
        ERROR,
        "{name}: no metric that was asked for fits these trials, so there is nothing to report",
        fix="name one with -m",
    ),
    "no-results/export": Entry(ERROR, "{name} {kind}; an export takes what `hitmiss score … -o FILE` writes"),
    "no-results/holds-figure": Entry(ERROR, "{name} holds no number, so there is nothing to show"),
    "not-a-comparison": Entry(ERROR, "{name} is not of the form of a comparison: {error}"),
    "mixed-runs": Entry(ERROR, "give results or files, not both; results.save(FILE) writes a file"),
    "mixed-runs/comparison": Entry(ERROR, "a comparison or a ranking has a page of its own: give one of them alone"),
    "not-results/report": Entry(
        ERROR,
        "report takes results, and this is a {name}",
        fix="measure it first: hm.report(hm.evaluate(table, metrics='eer')), or give design=hm.Design(metrics='eer')",
    ),
    "no-chromium": Entry(
        ERROR, "a PDF is printed by Chromium, and there is none here", fix="install it, or print the HTML page"
    ),
    "no-chromium/not": Entry(ERROR, "Chromium did not print the report: {stderr}"),
    "mixed-protocols": Entry(ERROR, "{to} takes runs of one protocol on the same trials; these are of {n_found} kinds"),
    "nothing-to-report": Entry(ERROR, "there is nothing to report on"),
    "needs-llr-scores-declared": Entry(
        ERROR,
        "{what} needs llr scores and these are declared {score_kind!r}",
        fix="declare the kind if you know better, or calibrate on a development set",
    ),
    "malformed-curve": Entry(ERROR, "this is not the {cls_kind} curve of a results file: {error}"),
    "malformed-curve/kind": Entry(ERROR, "unknown kind of curve {data!r}; known: {kinds}"),
    "no-attack-numbers": Entry(ERROR, "these results hold no {metric} of an attack at a strength"),
    "nothing-to-draw/scores": Entry(ERROR, "there is no finite score to draw"),
    "run-not-whole": Entry(ERROR, "the files were not kept whole", fix="load the run with whole=True"),
    "column-taken": Entry(
        ERROR, "the predictions have a column {clash!r} already, which the dump would add", fix="rename it"
    ),
    "duplicate-id/texts": Entry(
        ERROR, "{group}: the id {twice!r} has more than one text", fix="give texts with a language column"
    ),
    "errors-without-text": Entry(
        ERROR, "{group}: {n_lacking:,} wrongly decided ids have no text, the first is {lacking!r}"
    ),
    "is-file": Entry(ERROR, "{folder} is a file", fix="name a folder for the errors"),
    "raw-scores/state": Entry(ERROR, "raw scores state no probability", fix="calibrate them first"),
    "no-confidence": Entry(ERROR, "no answered trial has a confidence"),
    "no-figure/strength": Entry(ERROR, "curves over strength are drawn from results: measure the attacks first"),
    "other-comparison": Entry(ERROR, "{name} compares other runs: none of its numbers is in these results"),
    "bad-media-source": Entry(
        ERROR, "{--media <path_name>}: give a folder, a manifest ({TABLES}) or an .npz of signals"
    ),
    "nothing-to-draw/results": Entry(ERROR, "there are no results to draw"),
    "nothing-to-draw/metrics": Entry(ERROR, "there are no metrics to draw"),
    "other-classes/condition": Entry(ERROR, "{condition} is about other classes ({found}) than the first ({first})"),
    "submission-rejected": Entry(ERROR, "{texts:lines}"),
    "no-curve": Entry(ERROR, "there is no curve to draw: every trial is {only}"),
    "no-curve/scores": Entry(ERROR, "no trial has a score"),
    "no-trials-behind": Entry(
        ERROR,
        "these results do not know their trials, so there is no curve",
        fix="measure them here, or read a file that `hitmiss score -o` wrote",
    ),
    "pictures-refused": Entry(ERROR, "{file}: {error}"),
    "data-simulated": Entry(
        WARNING,
        "{name}: the data are simulated, as the README.txt beside them says; the numbers do not describe a real system",
    ),
    "figure-format": Entry(ERROR, "{name} must end in one of {formats}"),
    "no-figure": Entry(ERROR, "there is no {kind} of this; there are {known}"),
    "option-count/names": Entry(ERROR, "{n:names} given for {total:runs}", fix="name each or none"),
}
