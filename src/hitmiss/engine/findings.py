"""What the engine finds: requirements, and rules that say nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, INFO, NOTE, WARNING, Entry

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
    "bad-requirements-file": Entry(ERROR, "{file} is not readable as TOML: {why}"),
    "bad-requirements-file/list": Entry(
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
    "bad-rule/sign": Entry(ERROR, "the rule {text!r}: write > or <", fix="a figure that equals its limit passes"),
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
}
