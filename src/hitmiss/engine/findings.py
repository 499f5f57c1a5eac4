"""What the engine finds: requirements, and rules that say nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ALARM, ERROR, INFO, NOTE, WARNING, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "no-asv/rates": Entry(
        ERROR,
        "{metric} needs the error rates of a speaker verifier",
        fix="give its scores and key with {--asv?} and {--asv-key?}",
    ),
    # requirements
    "requirement-met": Entry(INFO, "PASS: {rule}; {figure} is {value}.", "PASS: {rule}"),
    "requirement-broken": Entry(WARNING, "FAIL: {rule}; {figure} is {value}.", "FAIL: {rule}"),
    "requirement-not-shown": Entry(NOTE, "NOT SHOWN: {rule}; {figure} is {value}.", "NOT SHOWN: {rule}"),
    "requirement-not-shown/needs": Entry(
        NOTE,
        "NOT SHOWN: {rule}; {figure} is {value}; about {needed:,} {of} would show it.",
        "NOT SHOWN: {rule}; about {needed:,} {of} would show it",
    ),
    "requirement-not-shown/no-interval": Entry(
        NOTE,
        "NOT SHOWN: {rule}; {figure} is {value}, without an interval.",
        "NOT SHOWN: {rule}",
        fix="add {--bootstrap 1000}",
    ),
    "requirement-undefined": Entry(NOTE, "NOT SHOWN: {rule}; {figure} is undefined: {note}.", "NOT SHOWN: {rule}"),
    "requirements-unmet": Entry(ERROR, "{outcome}: {n:,} of {total:,} requirements are not shown to be met"),
    "bad-requirement": Entry(
        ERROR,
        "cannot read the requirement {text!r}",
        fix="write it as 'eer.high <= 0.05', 'worst eer <= 0.2' or 'precision >= 0.9 at prevalence 1%'",
    ),
    "bad-requirement/equal": Entry(ERROR, "the requirement {text!r} asks for one exact number", fix="write <= or >="),
    "bad-prevalence": Entry(
        ERROR, "the requirement {text!r}: a prevalence lies between 0 and 1", fix="write it as 0.01 or 1%"
    ),
    "prevalence-unknown": Entry(
        ERROR, "{metric} at another prevalence is not known; it is for {known}", fix="leave the prevalence out"
    ),
    "bad-requirements-file": Entry(
        ERROR, "{file} must hold one list, require", fix='write require = ["eer.high <= 0.05"]'
    ),
    # rules of gates
    "gate-failed": Entry(ERROR, "{n:,} of {total:,} checks failed: {listed:;}{more}"),
    "check-failed": Entry(INFO, "{figure}: {reason} ({rule})"),
    "more-checks": Entry(INFO, "; and {n:,} more"),
    "no-rule": Entry(
        ERROR,
        "a gate needs a rule",
        fix="say {--require 'eer.high <= 0.05'}, {--fail-if 'eer > 0.05'}, or {--baseline RUN} with {--max-regression eer=0.005}",
    ),
    "no-rule/baseline": Entry(
        ERROR,
        "{--baseline?} alone checks nothing",
        fix="say how much worse is allowed, as {--max-regression eer=0.005}",
    ),
    "bad-rule": Entry(
        ERROR,
        "cannot read the rule {text!r}",
        fix="write it as 'eer > 0.05', 'worst eer > 0.2' or 'eer[codec=C05].high > 0.1'",
    ),
    "bad-rule/sign": Entry(ERROR, "the rule {text!r}: write > or <", fix="a number that equals its limit passes"),
    "bad-rule/slice": Entry(ERROR, "the rule {text!r}: a slice is written [column=value], [column=*] for each"),
    "no-baseline": Entry(ERROR, "{--max-regression?} needs {--baseline RUN} to compare with"),
    "no-limit": Entry(ERROR, "the limit {limit} is beyond every number, so it would check nothing"),
    "vain-rule/never": Entry(ERROR, "the rule {rule!r} never fails: {lies}{meant}"),
    "vain-rule/always": Entry(ERROR, "the rule {rule!r} always fails: {lies}{meant}"),
    "vain-rule/turned": Entry(
        ERROR,
        "the rule {rule!r} fails where {metric} is good: {better} is better",
        fix="to fail where it is too {worse}, write {turned!r}",
    ),
    "number-lies": Entry(INFO, "{name} lies between {low} and {high}"),
    "number-lies/above": Entry(INFO, "{name} is at least {low}"),
    "per-cent-meant": Entry(INFO, "; for per cent write {meant!r}"),
    # notes of estimates
    "no-interval/items-repeat": Entry(
        NOTE,
        "no interval: items repeat; resample whole items (unit=item)",
        "items repeat; resample whole items (unit=item)",
    ),
    "few-errors-counted": Entry(NOTE, "few errors at the threshold: judged by the trials on which the two runs differ"),
    "from-both-intervals": Entry(NOTE, "from both intervals"),
    "one-way-to-choose": Entry(
        ERROR,
        "a threshold is chosen in one way",
        fix="leave out all but one of {--guarantee}, {--keep} and {--capacity}",
    ),
    "no-volume": Entry(
        ERROR,
        "{--capacity} needs the number of items of the same period",
        fix="add {--volume}, such as {--volume 2000000}",
    ),
    "bad-prevalence-in-use": Entry(ERROR, "a prevalence is a share between 0 and 1", fix="write {--prevalence 1.5%}"),
    "bad-volume-in-use": Entry(ERROR, "{--volume} and {--capacity} are numbers above 0"),
    "bad-keep": Entry(
        ERROR,
        "{text!r}: a limit to keep is about one metric of all rows of a group",
        fix="write {--keep 'recall >= 0.9'}",
    ),
    "each-group-its-own": Entry(
        ERROR, "{--<name>} says nothing about {group}, and groups have their own", fix="write {--<name> <group>=…}"
    ),
    "gaps-of-many": Entry(
        ERROR, "{--gap <gap>} compares the gaps of two runs, and {n} were given", fix="compare them two by two"
    ),
    "identities-of-many": Entry(
        ERROR, "{--identity <names>} compares the bias of two runs, and {n} were given", fix="compare them two by two"
    ),
    "gaps-together": Entry(NOTE, "{n} gaps together"),
    "spread-of": Entry(NOTE, "greatest: {most}, least: {least}"),
    "undefined/one-group": Entry(NOTE, "undefined: {n} {column} has a number"),
    "mean-over-some": Entry(NOTE, "over {n_defined} of {n_cells} slices"),
    "no-interval/shared-trials": Entry(
        NOTE,
        "no interval: these slices share their {other} trials; resample a {--unit?} to get one",
        short="these slices share their {other} trials; resample a {--unit?} to get one",
    ),
    "no-interval/shared-items": Entry(
        NOTE,
        "no interval: these slices share their items; resample whole items (unit=item)",
        short="these slices share their items; resample whole items (unit=item)",
    ),
    "undefined/no-slice-defined": Entry(NOTE, "undefined: in no slice defined"),
    "no-interval/shared-too-many": Entry(
        NOTE,
        "no interval: its numbers share trials, and those are too many to resample together; resample a {--unit?}",
        short="its numbers share trials, and those are too many to resample together; resample a {--unit?}",
    ),
    "undefined/part": Entry(NOTE, "undefined: {lost} is"),
    "undefined/zero-denominator": Entry(NOTE, "undefined: nothing to divide by"),
    "undefined/one-class": Entry(NOTE, "undefined: only {part} here"),
    "undefined/empty-denominator": Entry(NOTE, "undefined in {places}: an empty denominator"),
    "undefined/both-infinite": Entry(NOTE, "undefined: both are infinite"),
    "no-interval/slices-too-little": Entry(
        NOTE,
        "no interval: in {unknown} of {n_cells} slices there is too little for one",
        short="in {unknown} of {n_cells} slices there is too little for one",
    ),
    "few-of-class": Entry(NOTE, "only {n} {name}"),
    "no-test/composite": Entry(NOTE, "no test: made of several metrics"),
    "no-test/shared-trials": Entry(NOTE, "no test: these slices share trials; resample a {--unit?}"),
    "no-interval/no-width": Entry(NOTE, "no interval: {why}", short="{why}"),
    "no-interval/no-error-shown": Entry(
        NOTE,
        "no interval: it is the same without any one unit, so nothing shows how uncertain it is",
        short="it is the same without any one unit, so nothing shows how uncertain it is",
    ),
    "no-interval/part": Entry(
        NOTE, "no interval: that of {part} shows no error", short="that of {part} shows no error"
    ),
    "no-interval/of-a-group": Entry(
        NOTE,
        "no interval: a group has none; ask for {--bootstrap 1000}",
        short="a group has none; ask for {--bootstrap 1000}",
    ),
    "few-of-class/identity": Entry(NOTE, "only {few} {part}"),
    "mean-over-some/identities": Entry(NOTE, "over {defined} of {n_values} identities"),
    "undefined/no-text": Entry(NOTE, "undefined: no {part} text there"),
    "no-interval/unequal-units": Entry(
        NOTE,
        "no interval: {n} of {unit} say no more than {known:.1f} of equal size would{part}",
        short="{n} of {unit} say no more than {known:.1f} of equal size would{part}",
    ),
    "no-interval/one-unit-only": Entry(NOTE, "no interval: one {unit} alone", short="one {unit} alone"),
    "no-interval/few-units": Entry(
        NOTE, "no interval: only {n} of {unit} to draw from", short="only {n} of {unit} to draw from"
    ),
    "no-interval/weights-undrawn": Entry(
        NOTE,
        "no interval: with sampling weights it comes from draws, and none were asked for ({--bootstrap 1000})",
        short="with sampling weights it comes from draws, and none were asked for ({--bootstrap 1000})",
    ),
    "no-interval/same-replicates": Entry(
        NOTE, "no interval: every replicate gives the same number", short="every replicate gives the same number"
    ),
    "no-interval/one-unit": Entry(
        NOTE, "no interval: all that varies comes from one unit", short="all that varies comes from one unit"
    ),
    "no-interval/at-end": Entry(
        NOTE,
        "no interval: the value is at the end of its range, and draws do not show how far it may be from there",
        short="the value is at the end of its range, and draws do not show how far it may be from there",
    ),
    "no-interval/few-values": Entry(
        NOTE,
        "no interval: it is one of {values} values, because scores or values are tied, and draws do not show how near the "
        "next one is",
        short="it is one of {values} values, because scores or values are tied",
    ),
    "no-interval/one-of-kinds": Entry(NOTE, "no interval: {part}{of}{trials} alone", short="{part}{of}{trials} alone"),
    "no-interval/alike": Entry(NOTE, "no interval: {part}", short="{part}"),
    "no-interval/biased-difference": Entry(NOTE, "no interval and no test: resampling biases {metric_name}"),
    "no-interval/few-at-threshold": Entry(
        NOTE,
        "no interval: {seen} {name} at its threshold, and one more would change it by {effect:.2g}",
        short="{seen} {name} at its threshold, and one more would change it by {effect:.2g}",
    ),
    "no-interval/one-of-class": Entry(NOTE, "no interval: {part} alone", short="{part} alone"),
    "undefined/one-run": Entry(NOTE, "undefined in one of the runs"),
    "no-test/biased": Entry(NOTE, "no test: resampling biases {metric_name}"),
    "no-test/undrawn": Entry(NOTE, "no test: no replicates were drawn"),
    "no-test/too-few": Entry(NOTE, "no test: {units:.3g} {what} are too few for one at {level:.0%}"),
    "no-test/no-error": Entry(
        NOTE, "no test: a run shows no error of one kind at its threshold, and no replicate differs"
    ),
    "undefined/denominator": Entry(NOTE, "undefined: an empty denominator in {metric_name}"),
    "no-interval/fitted": Entry(
        NOTE,
        "no interval: {question_text} is fitted to these trials, and draws of them cover 90 % of truths, not 95 %",
        short="{question_text} is fitted to these trials, and draws of them cover 90 % of truths, not 95 %",
    ),
    "undefined/too-few": Entry(NOTE, "undefined: {share}, fewer than the {least:.1%} that it is asked for"),
    "undefined/nothing-there": Entry(NOTE, "undefined: {counts}"),
    "no-interval/biased": Entry(
        NOTE, "no interval: resampling biases {metric_name}", short="resampling biases {metric_name}"
    ),
    "undefined/every-run": Entry(NOTE, "undefined in every run"),
    "undefined/no-positive-calls": Entry(NOTE, "undefined: nothing is called positive"),
    "zero-by-convention": Entry(
        NOTE, "0 by convention: nothing to divide by in {metric_name}", "0 by convention: nothing to divide by"
    ),
    "over-trials/some": Entry(NOTE, "over {n_values} trials, {left_out} that lack items left out"),
    "over-trials": Entry(NOTE, "over {n_values} trials"),
    "no-interval/undrawn": Entry(NOTE, "no interval: add {--bootstrap 1000}", short="add {--bootstrap 1000}"),
    "no-interval/unit-alone": Entry(NOTE, "no interval: one unit alone", short="one unit alone"),
    "unit-not-used": Entry(
        WARNING,
        "trials were drawn one by one, and those of one {name} are not independent; with {--unit <unit>} intervals would be about so many times as wide: {ratios}",
    ),
    "comparison-forced/invalid": Entry(WARNING, "INVALID COMPARISON, forced: {breach}"),
    "unit-not-used/no-interval": Entry(
        WARNING,
        "trials were drawn one by one, and those of one {name} are not independent; with {--unit <unit>}: {why}",
    ),
    "scores-constant": Entry(
        ALARM, "every score is {first:g}: the scores carry no information, whatever the numbers are"
    ),
    "scores-too-large": Entry(
        WARNING,
        "scores beyond 2^53: neighbouring whole numbers are one number there, so trials that differ in the file may be tied; scale the scores",
    ),
    "scores-reversed/undeclared": Entry(
        ALARM,
        "the scores look REVERSED: ROC AUC is {area:.4f} [{low:.4f}, {high:.4f}]; nothing was flipped. Declare {--higher <negative>} if the scores mean that",
    ),
    "ties-matter": Entry(
        WARNING,
        "ties matter: the EER is {official:.4f} by the official rule and {grouped:.4f} with tied scores taken together; {tied_mass:.1%} of trials tie with the other class",
    ),
    "scores-reversed/declared": Entry(
        ALARM,
        "the scores look REVERSED: ROC AUC is {area:.4f} [{low:.4f}, {high:.4f}]; higher scores go with {positive}, and {--higher <negative>} says the opposite",
    ),
    "direction-not-shown": Entry(
        NOTE,
        "{place}not shown that higher scores go with the positive class: ROC AUC is {area:.4f} [{low:.4f}, {high:.4f}], "
        "which includes 0.5",
    ),
    "not-a-signature": Entry(ERROR, "{text!r} is not a hitmiss signature"),
    "unknown-gap-value": Entry(ERROR, "no {column} is {unknown!r}; there are {values_2}"),
    "no-ids": Entry(
        ERROR,
        "{name} cannot be compared: {file} has no ids, so its rows have no partners in another file",
        fix="write the scores again with an id column",
    ),
    "other-direction": Entry(
        ERROR,
        "the directions differ: the positive class is {positive} in {names} and {positive_2} in {names_2}",
        fix="read both with the same positive class",
    ),
    "other-score-kind": Entry(
        ERROR,
        "the scores of {names} are declared {score_kind!r} and those of {names_2} {score_kind_2!r}; bring both to one kind, or compare decisions",
    ),
    "no-pairs/ids": Entry(
        ERROR,
        "no id is in both runs: {names} has {only_a}, {names_2} has {only_b}",
        fix="check that they belong together",
    ),
    "repeated-questions": Entry(ERROR, "{name} answers {height} questions more than once, the first is {ids}"),
    "reversed-labels": Entry(
        ERROR, "every label of {names} is the other class in {names_2}: one of them has its classes reversed"
    ),
    "other-classes": Entry(
        ERROR,
        "the {field} class is {ours!r} in {names} and {theirs!r} in {names_2}",
        fix="read both with the same classes",
    ),
    "other-weights": Entry(
        ERROR, "{has} has {kind} weights and {lacks} has none", fix="read both with the same weights"
    ),
    "other-weights/rows": Entry(
        ERROR,
        "{height:,} rows have another weight in {names} than in {names_2}, the first is {item!r} ({one:g} and {two:g}); a pair has one weight",
    ),
    "several-runs/in-one": Entry(
        ERROR,
        "{name} holds {n_values} {what} ({column}: {values_2}{part}) and the other does not",
        fix="choose one of them with [{column}={values_3}] after its name",
    ),
    "no-pairs": Entry(ERROR, "there are no pairs to compare"),
    "too-many-draws": Entry(
        ERROR,
        "{bootstrap:,} draws of {n_trials:,} rows with sampling weights take too much memory",
        fix="ask for at most {--bootstrap <MOST_WEIGHTS>}",
    ),
    "sampling-weights/refused": Entry(ERROR, "{name} {name_2}"),
    "vain-rule": Entry(ERROR, "the regression of {target}: neither a higher nor a lower {metric} is worse"),
    "vain-rule/never-fails": Entry(
        ERROR, "{rule!r} never fails: {metric} cannot change by more than {width:g}{points}"
    ),
    "no-run-column": Entry(ERROR, "these results have no run column {column!r}"),
    "wrong-score-kind": Entry(
        ERROR,
        "{spec_name} needs {kinds} scores and these are declared {kind!r}",
        fix="declare the kind if you know better, or calibrate on a development set",
    ),
    "wrong-positive": Entry(
        ERROR,
        "{spec_name} takes {positive} to be the positive class and in these trials it is {positive_2!r}",
        fix="read them with {--positive <positive>}",
    ),
    "no-decisions": Entry(ERROR, "{name} needs decisions, and these trials have none; {how}"),
    "no-confidence/metric": Entry(
        ERROR,
        "{name} needs the confidence of each decision, and these trials have none",
        fix="if their scores are probabilities, say so by {--score-kind probability}",
    ),
    "no-labels/scores": Entry(ERROR, "these scores have no labels, so nothing can be measured", fix="give the key"),
    "bad-regression": Entry(
        ERROR, "cannot read the regression {text!r}", fix="write it as 'eer=0.005' or 'eer[codec=C05]=0.5pp'"
    ),
    "bad-regression/percent": Entry(
        ERROR, "the regression {text!r}: % of what? Write 0.005, or 0.5pp for percentage points"
    ),
    "bad-regression/negative": Entry(ERROR, "the regression {text!r}: what is allowed cannot be negative"),
    "baseline-not-one": Entry(ERROR, "the baseline has {n_same} numbers for {e}; it must have one"),
    "baseline-settings": Entry(
        ERROR, "{metric} of the baseline was measured with other settings: {settings} and {settings_2}"
    ),
    "not-a-slice": Entry(
        ERROR,
        "{name} is not a text column, so trials cannot be grouped or resampled by it",
        fix="name a slice column such as codec",
    ),
    "bad-metric-form": Entry(ERROR, "the form of a metric is made of hitmiss.stats.forms; found {name}"),
    "no-exchange": Entry(ERROR, "{text} has no form to exchange answers in", fix="use the bootstrap"),
    "one-class/validation": Entry(
        ERROR, "{group}: all its validation rows are {only}, so no threshold is better than another"
    ),
    "no-test-rows": Entry(ERROR, "{group}: there is no test row to judge its threshold on"),
    "group-refused": Entry(ERROR, "{group}: {error}"),
    "no-number": Entry(ERROR, "no number for {target}; the results have {metric} by {columns}"),
    "needs-every-trial/column": Entry(
        ERROR,
        "this number needs the {name} of every trial at once, which counted trials do not have",
        fix="leave {--stream?} out",
    ),
    "blank-unit": Entry(
        ERROR,
        "{n:,} trials have no {name}: they would all be drawn as one; fill the cells, or leave them out with {--where?}",
    ),
    "not-runs": Entry(
        ERROR, "rank takes runs by name or in a list, as hm.rank({{'ours': a, 'theirs': b}}, 'eer'); found a {name}"
    ),
    "ranking-test": Entry(
        ERROR,
        "the test {test!r} is for two runs; a ranking judges all pairs at once on shared replicates: leave {--test?} out, or compare two runs",
    ),
    "incomparable/many": Entry(ERROR, "{wrong}{more}. {--force} compares them anyway, with a warning in the report"),
    "one-unit/drawn": Entry(ERROR, "there is only one {name} ({values_2!r}); units can be drawn only from two or more"),
    "no-bca": Entry(ERROR, "a BCa interval of this metric is not available", fix="use percentile"),
    "test-not-allowed": Entry(
        ERROR,
        "the test {wanted!r} is for {needs}, each trial once and independent; {text} does not qualify here",
        fix="choose another test",
    ),
    "same-name/runs": Entry(
        ERROR, "two runs have the same name", fix="give them by name, as hm.rank({{'ours': a, 'theirs': b}}, 'eer')"
    ),
    "column-conflict": Entry(ERROR, "{n:,} pairs have another {name} in {first} than in {other}"),
    "different-samples": Entry(
        ERROR,
        "different sample sizes, so statistical power differs: {parts:and}",
        fix="{--allow-missing} compares what both have, with a note in the report",
    ),
    "only-in-one": Entry(INFO, "{n:,} of {own} are not in {other} (as {ids})"),
    "label-conflict": Entry(
        ERROR,
        "{n:,} of {total:,} questions have another label in {a} than in {b}, the first is {first!r}",
        fix="the runs were not scored against the same truth",
    ),
    "one-slice": Entry(NOTE, "a table by {by} is trivial here: every trial has {value}"),
    "one-sided-slices": Entry(
        NOTE,
        "by {by}: each slice has one class, so what compares classes is undefined; {option} sets each slice of {kind} trials against all {other} trials",
    ),
    "gap-of": Entry(NOTE, "{beyond} out, {within} in"),
    "worst-of": Entry(NOTE, "worst of {n}"),
    "worst-of/clear": Entry(NOTE, "worst of {n}, clearly"),
    "worst-of/several": Entry(
        NOTE, "worst of {n}; {several} of them may be the worst, and the interval allows for that"
    ),
}
