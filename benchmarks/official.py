"""Numbers and time of official packages, run live beside ours on the same simulated scores.

FOLDER holds checkouts named owner+name, as `asvspoof-challenge+asvspoof5`; a package that is not there is left out.
Their code is imported as it is, or a single function of a script is run that would read its command line.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

import hitmiss as hm
from hitmiss import metrics as m

Pair = tuple[str, float, float]
SEEDS = range(8)
ASV = {"p_miss": 0.05, "p_fa": 0.04, "p_fa_spoof": 0.6}
COSTS = {"Pspoof": 0.05, "Ptar": 0.9405, "Pnon": 0.0095, "Cmiss": 1, "Cfa": 10, "Cfa_spoof": 10}


@contextlib.contextmanager
def opened(folder: Path, name: str) -> Iterator[ModuleType]:
    """Import a module of a package from its own folder, and forget it afterwards: packages share names."""
    known = {*sys.modules}
    sys.path.insert(0, str(folder))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        for other in {*sys.modules} - known:
            if str(folder) in str(getattr(sys.modules[other], "__file__", "") or ""):
                del sys.modules[other]


def trials(seed: int, decimals: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Classes and the scores of a CM, an ASV and both, rounded so that some scores are tied."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["target", "nontarget", "spoof"], 900, p=[0.4, 0.3, 0.3])
    cm = 2.0 * (kind != "spoof") + rng.normal(size=900)
    asv = 2.5 * (kind != "nontarget") - 0.5 * (kind == "spoof") + rng.normal(size=900)
    return kind, *(np.round(one, decimals) for one in (cm, asv, cm + asv))


def asvspoof5(folder: Path) -> Iterator[Pair]:
    """Track 1 and Track 2 with the organisers' ASV."""
    with opened(folder / "evaluation-package", "calculate_metrics") as package:
        for seed in SEEDS:
            kind, cm, asv, sasv = trials(seed, 1 if seed % 2 else 6)
            word = np.where(kind == "spoof", "spoof", "bonafide")
            theirs = package.calculate_aDCF_tdcf_tEER(cm, asv, sasv, word, kind, None, printout=False)
            split = [[one[kind == name] for name in ("target", "nontarget", "spoof")] for one in (cm, asv, sasv)]
            yield "min a-DCF", m.min_a_dcf(*split[2]), theirs[0]
            yield "min t-DCF", m.min_t_dcf(cm[kind != "spoof"], cm[kind == "spoof"]), theirs[1]
            yield "t-EER", m.t_eer(split[0], split[1], ties="official"), theirs[2] / 100
            cost, eer, cllr, actual = package.calculate_minDCF_EER_CLLR_actDCF(cm, word, None, printout=False)
            y = kind != "spoof"
            yield "min DCF", m.min_dcf(y, cm), cost
            yield "EER", m.eer(y, cm, ties="official"), eer
            yield "Cllr", m.cllr(y, cm), cllr
            yield "act DCF", m.act_dcf(y, cm), actual


def asvspoof2021(folder: Path) -> Iterator[Pair]:
    """The revised and the legacy t-DCF, for given rates of the ASV."""
    with opened(folder / "eval-package", "eval_metrics") as package:
        for seed in SEEDS:
            kind, cm, *_ = trials(seed, 1 if seed % 2 else 6)
            bona, spoof = cm[kind != "spoof"], cm[kind == "spoof"]
            rates = (ASV["p_fa"], ASV["p_miss"], ASV["p_fa_spoof"])
            found, _ = package.compute_tDCF(bona, spoof, *rates, COSTS, False)
            ours = {"asv_miss": ASV["p_miss"], "asv_fa": ASV["p_fa"], "asv_fa_spoof": ASV["p_fa_spoof"]}
            from hitmiss.metrics.tandem_trials import min_t_dcf_legacy, min_t_dcf_of_trials

            yield "min t-DCF", min_t_dcf_of_trials(kind != "spoof", cm, **ours), float(np.min(found))
            legacy = {**COSTS, "Cmiss_asv": 1, "Cfa_asv": 10, "Cmiss_cm": 1, "Cfa_cm": 10}
            found, _ = package.compute_tDCF_legacy(
                bona, spoof, ASV["p_fa"], ASV["p_miss"], 1 - ASV["p_fa_spoof"], legacy, False
            )
            yield "min t-DCF (2019)", min_t_dcf_legacy(kind != "spoof", cm, **ours), float(np.min(found))
            yield "EER", m.eer(kind != "spoof", cm, ties="official"), package.compute_eer(bona, spoof)[0]


def sasv2022(folder: Path) -> Iterator[Pair]:
    """The three EERs."""
    with opened(folder, "metrics") as package:
        for seed in SEEDS:
            kind, *_, sasv = trials(seed, 1 if seed % 2 else 6)
            for name, ours, theirs in zip(
                ("SASV-EER", "SV-EER", "SPF-EER"),
                (m.sasv_eer, m.sv_eer, m.spf_eer),
                package.get_all_EERs(sasv.tolist(), kind.tolist()),
                strict=True,
            ):
                yield name, float(ours(kind, sasv)), theirs


def a_dcf(folder: Path) -> Iterator[Pair]:
    """The a-DCF with the defaults of its package, from a file."""
    with opened(folder, "a_dcf.a_dcf") as package, tempfile.TemporaryDirectory() as place:
        for seed in SEEDS:
            kind, *_, sasv = trials(seed, 1 if seed % 2 else 6)
            file = Path(place, "scores.txt")
            file.write_text("".join(f"s u{i} {s} {k}\n" for i, (s, k) in enumerate(zip(sasv, kind, strict=True))))
            theirs = package.calculate_a_dcf(str(file), printres=False)["min_a_dcf"]
            costs = m.TandemCosts(0.9, 0.05, 0.05, 1.0, 10.0, 20.0)
            ours = m.min_a_dcf(*(sasv[kind == k] for k in ("target", "nontarget", "spoof")), costs=costs)
            yield "min a-DCF", ours, float(np.ravel(theirs)[0])


def arena(folder: Path) -> Iterator[Pair]:
    """EER, F1 and accuracy, file to number by the protocol speech-df-arena."""
    with opened(folder, "utils.metrics") as package, tempfile.TemporaryDirectory() as place:
        for seed in SEEDS:
            kind, cm, *_ = trials(seed, 1 if seed % 2 else 6)
            key, scores = Path(place, "key.csv"), Path(place, "scores.txt")
            key.write_text(
                "file_name,label\n"
                + "".join(f"/a/{i},{'spoof' if k == 'spoof' else 'bonafide'}\n" for i, k in enumerate(kind))
            )
            scores.write_text("".join(f"/a/{i} {s}\n" for i, s in enumerate(cm)))
            theirs = package.compute_metrics(str(scores), str(key))
            ours = hm.evaluate(scores, key, "speech-df-arena", bootstrap=0, settings="none")
            yield "EER", ours.one("eer").value or 0.0, theirs["EER (%)"] / 100
            yield "F1 at the EER", ours.one("f1_at_eer").value or 0.0, theirs["F1-score"]
            yield "accuracy at the EER", ours.one("accuracy_at_eer").value or 0.0, theirs["Accuracy (%)"] / 100


def raid(folder: Path) -> Iterator[Pair]:
    """Rates of every generator, domain and attack by the package, at the exact thresholds; and its areas."""
    with opened(folder / "raid", "evaluate") as package, tempfile.TemporaryDirectory() as place:
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            model = rng.choice(["human", "chatgpt", "gpt2"], 3000)
            frame = pd.DataFrame({"id": [f"t{i}" for i in range(3000)], "model": model})
            frame["domain"], frame["attack"] = (
                rng.choice(["news", "poetry"], 3000),
                rng.choice(["none", "number"], 3000),
            )
            frame["decoding"], frame["repetition_penalty"] = "greedy", "no"
            score = np.round((model != "human") + (frame["domain"] == "news") + rng.normal(size=3000), 2)
            Path(place, "r.json").write_text(
                json.dumps([{"id": i, "score": float(s)} for i, s in zip(frame["id"], score, strict=True)])
            )
            frame.to_csv(Path(place, "d.csv"), index=False)
            limits: dict[str, dict[str, float]] = {}
            for fpr in (0.05, 0.01):
                for domain in ("news", "poetry"):
                    own = (frame["domain"] == domain) & ((model != "human") | (frame["attack"] == "none"))
                    label, value = (model != "human")[own], np.asarray(score)[own]
                    from hitmiss.core.tally import Tally

                    chosen = hm.best_threshold(Tally.of(label, value), f"tpr_at_fpr(fpr={fpr})")
                    limits.setdefault(str(fpr), {})[domain] = chosen.threshold
            found = package.compute_scores(frame.assign(score=np.asarray(score)), limits)
            ours = hm.evaluate(Path(place, "r.json"), Path(place, "d.csv"), "raid", bootstrap=0, settings="none")
            for row in found:
                slices = {o: row[t] for o, t in (("generator", "model"), ("domain", "domain"), ("attack", "attack"))}
                named = {name: value for name, value in slices.items() if value != "all"}
                if len(named) > 1 or row["decoding"] != "all" or row["repetition_penalty"] != "all":
                    continue
                for text, fpr in (("tpr_at_domain_fpr", "0.05"), ("tpr_at_domain_fpr(fpr=0.01)", "0.01")):
                    yield f"TPR at {fpr} FPR", ours.one(text, **named).value or 0.0, row["accuracy"][fpr]["accuracy"]
                yield "ROC AUC", ours.one("roc_auc", **named).value or 0.0, row["auroc"]


def partialspoof(folder: Path) -> Iterator[Pair]:
    """The segment EER after merging segments by the function of the published script."""
    tree = ast.parse((folder / "metric" / "SegmentEER.py").read_text())
    own = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "get_pd_in_scoretype"]
    space: dict[str, Any] = {"pd": pd, "np": np}
    exec(compile(ast.Module(own, []), "SegmentEER.py", "exec"), space)  # the script itself would read its command line
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        wav = np.repeat(np.arange(40), rng.integers(5, 30, 40))
        label = (rng.random(len(wav)) < 0.9).astype(float)
        frame = pd.DataFrame({"Wavid": wav, "True_Class": label, "Predict_Score_1": label + rng.normal(size=len(wav))})
        number = frame.groupby("Wavid").cumcount()
        for merge in (2, 4, 8):
            parts = [space["get_pd_in_scoretype"](g.reset_index(drop=True), merge) for _, g in frame.groupby("Wavid")]
            merged = pd.concat(parts)
            theirs = m.eer(merged["True_Class"] == 1, merged["Predict_Score_1"], ties="official")
            ours = m.segment_eer(label, frame["Predict_Score_1"], wav.astype(str), number, merge=merge)
            yield f"segment EER, merge {merge}", ours, theirs


PACKAGES: dict[str, tuple[str, Callable[[Path], Iterator[Pair]]]] = {
    "asvspoof-challenge+asvspoof5": ("asvspoof5 fe23d30", asvspoof5),
    "asvspoof-challenge+2021": ("2021 9b33f5e", asvspoof2021),
    "sasv-challenge+SASVC2022_Baseline": ("SASVC2022_Baseline 1545f2b", sasv2022),
    "shimhz+a_DCF": ("a_DCF 0560623", a_dcf),
    "Speech-Arena+speech_df_arena": ("speech_df_arena 97a4445", arena),
    "liamdugan+raid": ("raid d1b12c0, at exact thresholds", raid),
    "nii-yamagishilab+PartialSpoof": ("PartialSpoof 847347a, merging of segments", partialspoof),
}


def speed(folder: Path) -> str:
    """CPU seconds of 1,000 replicates of min t-DCF over 100 speakers, by the package (ten, times 100) and here."""
    rng = np.random.default_rng(0)
    rows = ""
    with opened(folder / "asvspoof-challenge+2021" / "eval-package", "eval_metrics") as package:
        for n in (50_000, 148_176, 680_774):
            label, speaker = rng.random(n) < 0.1, rng.integers(0, 100, n)
            score = 3.0 * label + rng.normal(size=n) + 0.3 * rng.normal(size=100)[speaker]
            parts = [[score[(speaker == s) & own] for s in range(100)] for own in (label, ~label)]
            start = time.process_time()
            for _ in range(10):
                drawn = rng.integers(0, 100, 100)
                bona, spoof = (np.concatenate([own[i] for i in drawn]) for own in parts)
                np.min(package.compute_tDCF(bona, spoof, 0.0188, 0.0188, 0.46, COSTS, False)[0])
            theirs = (time.process_time() - start) * 100
            made = hm.Trials.of(label=label, score=score, speaker=speaker.astype(str))
            hm.measure(made, ["min_t_dcf"], unit="speaker", bootstrap=1000)  # what is loaded once is not counted
            start = time.process_time()
            hm.measure(made, ["min_t_dcf"], unit="speaker", bootstrap=1000)
            ours = time.process_time() - start
            rows += f"| {n:,} | {theirs:.0f} s | {ours:.2f} s | {theirs / ours:.0f} |\n"
    return rows


def live(folder: Path) -> str:
    """The section of the page."""
    rows = ""
    for name, (title, pairs) in PACKAGES.items():
        if not (folder / name).is_dir():
            continue
        found: dict[str, list[float]] = {}
        for what, ours, theirs in pairs(folder / name):
            found.setdefault(what, []).append(abs(ours - theirs))
        rows += "".join(f"| {what} | {title} | {len(own)} | {max(own):.1e} |\n" for what, own in found.items())
    return LIVE + rows + SPEED + speed(folder)


LIVE = """
## Live, beside the packages

The official code, fetched and run on the same simulated scores, half of them with many ties; the largest difference.

| number | package | compared | largest difference |
|---|---|---|---|
"""
SPEED = """
1,000 replicates of min t-DCF over 100 speakers with their interval, in seconds of CPU time on one core, against drawing
speakers and calling the official function (ten times, times 100):

| trials | official function | hitmiss | times faster |
|---|---|---|---|
"""
