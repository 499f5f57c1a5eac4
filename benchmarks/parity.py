"""Writes docs/parity.md: our figures beside those of other tools, on reference data that is not part of the project.

python benchmarks/parity.py FOLDER [PACKAGES]        FOLDER holds official_reference/ and scores/, see the page that it
writes; PACKAGES holds checkouts of official packages, which are run beside ours (see benchmarks/official.py)
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

import hitmiss as hm
from hitmiss import metrics as m

sys.path.insert(0, str(Path(__file__).parent))
from official import LIVE, live

PAGE = Path(__file__).resolve().parents[1] / "docs" / "parity.md"
DCF = {
    "asvspoof5": {},
    "seed_p_target_0.05_is_P_bonafide": {"p_target": 0.05, "c_miss": 1.0, "c_fa": 1.0},
    "seed_read_as_P_spoof_0.05": {"p_target": 0.95, "c_miss": 1.0, "c_fa": 1.0},
}
Pairs = Iterator[tuple[str, float, float]]


def sets(folder: Path) -> dict[str, dict[str, Any]]:
    """The reference sets that have both classes and no NaN, with their arrays."""
    expected = json.loads((folder / "expected.json").read_text())["sets"]
    found = {}
    for name, block in expected.items():
        if name[:2] in ("17", "18", "20"):
            continue
        table = pl.read_csv(folder / block["file"], infer_schema=False)
        word = table["label"] if "label" in table.columns else table["KEY"]
        arrays = ((word == "bonafide").to_numpy(), table["score"].cast(pl.Float64).to_numpy())
        found[name] = {**block, "arrays": arrays}
    return found


def figures(data: dict[str, dict[str, Any]], block: str, path: tuple[str, ...], ours: Callable[..., float]) -> Pairs:
    """(set, ours, theirs) wherever the other tool gave a number."""
    for name, entry in data.items():
        theirs: Any = entry.get(block, {})
        for key in path:
            theirs = theirs.get(key, {}) if isinstance(theirs, dict) else {}
        if not isinstance(theirs, dict):
            yield name, ours(*entry["arrays"]), float(theirs)


def difference(a: float, b: float) -> float:
    """|a − b|, 0 for the same infinity, inf for a NaN on one side."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    return abs(a - b) if math.isfinite(a - b) else math.inf


def line(what: str, tool: str, pairs: Pairs) -> str:
    """A row: what, against which tool, on how many sets, the largest difference and where it deviates."""
    got = [(name, difference(a, b), a, b) for name, a, b in pairs]
    apart = [f"{name[:2]}: {a:.6g} here, {b:.6g} there" for name, d, a, b in got if d > 1e-6]
    usual = max((d for _, d, _, _ in got if d <= 1e-6), default=0.0)
    return f"| {what} | {tool} | {len(got)} | {usual:.1e} | {'; '.join(apart) or '–'} |\n"


def official(data: dict[str, dict[str, Any]]) -> str:
    """The official package, every convention."""
    block, tool = "official_asvspoof5", "ASVspoof 5 package"
    rows = [
        line("EER (ties=official)", tool, figures(data, block, ("eer",), lambda y, s: m.eer(y, s, ties="official"))),
        line(
            "EER threshold",
            tool,
            figures(data, block, ("eer_threshold",), lambda y, s: m.eer_threshold(y, s, ties="official")),
        ),
        line("Cllr", tool, figures(data, block, ("cllr_bits",), m.cllr)),
    ]
    for name, settings in DCF.items():
        shown = ", ".join(f"{k}={v:g}" for k, v in settings.items()) or "official parameters"
        for key, metric in (("min_dcf", m.min_dcf), ("act_dcf", m.act_dcf)):
            pairs = figures(data, block, ("dcf", name, key), lambda y, s, f=metric, k=settings: f(y, s, **k))
            rows.append(line(f"{key} ({shown})", tool, pairs))
    return "".join(rows)


def others(data: dict[str, dict[str, Any]]) -> str:
    """The other tools."""
    sk = "sklearn"
    table: list[tuple[str, str, str, tuple[str, ...], Callable[..., float]]] = [
        ("ROC AUC", "scikit-learn 1.9.1", sk, ("roc_auc",), m.roc_auc),
        ("average precision", "scikit-learn 1.9.1", sk, ("average_precision_bonafide_positive",), m.average_precision),
        ("EER (grouped)", "scikit-learn roc_curve", sk, ("eer_roc_mean_at_argmin",), m.eer),
        (
            "EER (interpolated)",
            "scikit-learn roc_curve",
            sk,
            ("eer_roc_straight_line_crossing",),
            lambda y, s: m.eer(y, s, ties="interpolated"),
        ),
        ("Brier", "scikit-learn 1.9.1", "sklearn_probability", ("brier",), m.brier),
        ("log loss", "scikit-learn 1.9.1", "sklearn_probability", ("log_loss",), m.log_loss),
        ("EER (hull)", "PyBOSARIS f3601c1", "pybosaris", ("rocch_eer",), lambda y, s: m.eer(y, s, ties="hull")),
        ("min Cllr", "PyBOSARIS f3601c1", "pybosaris", ("min_cllr_bits",), m.min_cllr),
        ("Cllr", "PyBOSARIS f3601c1", "pybosaris", ("cllr_bits",), m.cllr),
        ("min_dcf (official parameters)", "PyBOSARIS f3601c1", "pybosaris", ("min_dcf_asvspoof5",), m.min_dcf),
        ("act_dcf (official parameters)", "PyBOSARIS f3601c1", "pybosaris", ("act_dcf_asvspoof5",), m.act_dcf),
        ("min Cllr", "PYLLR 442b10b", "pyllr", ("min_cllr_bits",), m.min_cllr),
        ("EER (grouped)", "torchmetrics 1.9.0, float32", "torchmetrics", ("binary_eer",), m.eer),
    ]
    return "".join(line(what, tool, figures(data, block, path, ours)) for what, tool, block, path, ours in table)


def engine(folder: Path) -> str:
    """Files through the whole engine: the tables of set 19."""
    expected = json.loads((folder / "expected.json").read_text())["sets"]["19_realistic_4k"]
    by = ["codec", "codec_q", "codec,codec_q", "gender", "attack,codec"]
    wanted = ["eer", "min_dcf", "act_dcf", "cllr"]
    results = hm.evaluate(
        folder / "19_realistic_4k.csv.gz",
        protocol="asvspoof5",
        score_kind="llr",
        columns={"score": "score"},
        metrics=wanted,
        by=by,
    )
    at = {(e.metric, frozenset(e.slice.items())): e.value for e in results if e.average is None}
    pairs: dict[str, list[tuple[str, float, float]]] = {}
    for names in (("codec",), ("codec_q",), ("gender",), ("codec", "codec_q")):
        for key, row in expected["by_" + "_x_".join(names)].items():
            cell = frozenset(zip(names, map(_coded, key.split("|")), strict=True))
            for ours, theirs in zip(wanted, ("eer", "min_dcf", "act_dcf", "cllr_bits"), strict=True):
                if isinstance(row[theirs], float):
                    pairs.setdefault(f"tables by {' × '.join(names)}", []).append(
                        (key, number(at[ours, cell]), row[theirs])
                    )
    matrix = expected["official_full_matrix"]
    for metric in ("eer", "min_dcf"):
        for attack, values in zip(matrix["rows_attack"][1:], matrix[metric][1:], strict=True):
            for codec, value in zip(matrix["cols_codec"][1:], values[1:], strict=True):
                if isinstance(value, float):
                    ours_ = at[metric, frozenset({("attack", attack), ("codec", _coded(codec))})]
                    pairs.setdefault("attack × codec matrix", []).append((attack + codec, number(ours_), value))
    return "".join(line(what, "ASVspoof 5 package, file to number", iter(rows)) for what, rows in pairs.items())


def number(value: float | None) -> float:
    """NaN for what is undefined."""
    return math.nan if value is None else value


def _coded(value: str) -> str:
    return "NONE" if value in ("-", "0") else value


def tandem(folder: Path) -> str:
    """Track 2 on set 20."""
    block = json.loads((folder / "expected.json").read_text())["sets"]["20_sasv_900"]["official_asvspoof5"]
    t = pl.read_csv(folder / "20_sasv_900.csv")
    kinds = ("target", "nontarget", "spoof")

    def split(column: str) -> tuple[Any, ...]:
        return tuple(t.filter(pl.col("asv_label") == k)[column].to_numpy() for k in kinds)

    bonafide = t.filter(pl.col("cm_label") == "bonafide")["cm_score"].to_numpy()
    spoof = t.filter(pl.col("cm_label") == "spoof")["cm_score"].to_numpy()
    rows = [
        ("min a-DCF", m.min_a_dcf(*split("sasv_score")), block["min_a_dcf"]),
        ("min t-DCF, organisers' ASV", m.min_t_dcf(bonafide, spoof), block["min_t_dcf_with_organiser_asv_rates"]),
        (
            "t-EER (fraction)",
            m.t_eer(split("cm_score"), split("asv_score"), ties="official"),
            block["t_eer_percent"] / 100,
        ),
    ]
    return "".join(line(what, "ASVspoof 5 package", iter([("20", a, b)])) for what, a, b in rows)


TANDEM = {
    "track2_tandem": ("asvspoof5-track2", "ASVspoof 5 package", {"min_a_dcf": "min_a_dcf", "t_eer": "t_eer", "min_t_dcf": "min_t_dcf_as_published"}),
    "asvspoof2021_la": ("asvspoof2021-la", "ASVspoof 2021 package", {"min_t_dcf": "min_t_dcf", "eer": "eer"}),
    "asvspoof2021_pa": ("asvspoof2021-pa", "ASVspoof 2021 package", {"min_t_dcf": "min_t_dcf", "eer": "eer"}),
    "asvspoof2021_df": ("asvspoof2021-df", "ASVspoof 2021 package", {"eer": "eer"}),
    "asvspoof2019_la": ("asvspoof2019-la", "tDCF_python", {"min_t_dcf_legacy": "min_t_dcf_legacy", "min_t_dcf": "min_t_dcf_revised", "eer": "eer"}),
    "sasv2022": ("sasv2022", "SASV 2022 baseline, a_DCF", {"sasv_eer": "sasv_eer", "sv_eer": "sv_eer", "spf_eer": "spf_eer", "min_a_dcf": "min_a_dcf_defaults_of_a_dcf_package"}),
}  # fmt: skip
"""Folders of tandem sets, the protocol and the code of each, and its metrics under both names."""


def tandem_files(folder: Path) -> str:
    """From the official files to the numbers over all trials; the slices are tested in tests/parity."""
    expected = json.loads((folder / "expected.json").read_text())
    found = []
    for family, (protocol, code, names) in TANDEM.items():
        pairs: dict[str, list[tuple[str, float, float]]] = {metric: [] for metric in names}
        for name, block in expected[family].items():
            results = _tandem_results(folder / family / name, family, protocol)
            for metric, theirs in names.items():
                value = results.one(metric).value
                official = _whole(block)[theirs]
                pairs[metric].append((name, number(value), number(official)))
        found += [
            line(f"{metric}, {protocol}", f"{code}, file to number", iter(rows)) for metric, rows in pairs.items()
        ]
    return "".join(found)


def _whole(block: dict[str, Any]) -> dict[str, Any]:
    """Return the official numbers over all trials of a set."""
    cells = block.get("full_key", block.get("subsets", {}).get("eval", {})).get("cells")
    return block if cells is None else next(c for c in cells if c["row"] == c["col"] == "Pooled")


def _tandem_results(files: Path, family: str, protocol: str) -> Any:
    """Evaluate a set as its files are published."""
    asked: dict[str, Any] = {"bootstrap": 0, "settings": "none"}
    if family == "track2_tandem":
        dummies = {"where": {"track_2_tag": ["eval"]}, "allow_missing": True} if files.name == "06_missing" else {}
        key, asv = files / "sasv_key_full.txt", str(files / "asv_org.tsv")
        return hm.evaluate(files / "sasv_scores.tsv", key, protocol, asv=asv, **dummies, **asked)
    if family == "asvspoof2019_la":
        return hm.evaluate(files / "cm_scores.txt", None, protocol, asv=str(files / "asv_scores.txt"), **asked)
    if family == "sasv2022":
        return hm.evaluate(files / "scores.txt", files / "trials.txt", protocol, **asked)
    keys = files / "keys" / family[-2:].upper()
    if family != "asvspoof2021_df":
        asked["asv"] = str(keys / "ASV" / "ASVTorch_Kaldi" / "score.txt")
        asked["asv_key"] = str(keys / "ASV" / "trial_metadata.txt")
    return hm.evaluate(files / "score.txt", keys / "CM" / "trial_metadata.txt", protocol, **asked)


def published(folder: Path) -> str:
    """Real scores beside what their author published."""
    claims = json.loads((folder / "asvspoof5_eval50k_published_metrics.json").read_text())
    table = pl.read_csv(folder / "asvspoof5_eval50k_scores.tsv.gz", separator="\t", infer_schema=False)
    label = (table["key"] == "bonafide").to_numpy()
    head = (
        "| system | AUC published | difference | minDCF published (P(bona fide) 0.05, costs 1) | difference | EER published | "
        "official | grouped | interpolated | minDCF official |\n|---|---|---|---|---|---|---|---|---|---|\n"
    )
    rows = []
    for system, claim in claims.items():
        score, whole = table[system].cast(pl.Float64).to_numpy(), claim["overall"]
        literal = m.min_dcf(label, score, p_target=0.05, c_miss=1.0, c_fa=1.0)
        eers = [m.eer(label, score, ties=t) for t in ("official", "grouped", "interpolated")]  # type: ignore[arg-type]
        cells = [
            system, f"{whole['auc']:.6f}", f"{abs(m.roc_auc(label, score) - whole['auc']):.1e}", f"{whole['min_dcf']:.6f}",
            f"{literal - whole['min_dcf']:+.1e}", f"{whole['eer']:.4f}", *(f"{e:.4f}" for e in eers), f"{m.min_dcf(label, score):.4f}",
        ]  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |\n")
    return head + "".join(rows)


HEAD = """# Parity

Our numbers beside those of other tools on the same scores. Written by `python benchmarks/parity.py FOLDER PACKAGES`, where FOLDER
holds twenty synthetic score sets with the numbers that public tools gave on them (`official_reference/`) and real
detectors' scores with published numbers (`scores/`); neither is part of this project. "Sets" is how many score sets the
other tool gave a number for; "largest difference" is over those that agree to 1e-6; everything else is listed.

| number | against | sets | largest difference | where it deviates |
|---|---|---|---|---|
"""

WHY = """
## The deviations, explained

- **Cllr of set 14** (scores beyond ±709): the official package overflows to infinity; the stable value here agrees with
  PyBOSARIS and PYLLR.
- **act_dcf of set 15, PyBOSARIS**: twelve scores lie exactly on the Bayes threshold −ln 1.9. The official package forms
  it as minus a logarithm, as here; PyBOSARIS takes the logit of an effective prior, which is another double.
- **EER conventions** differ only where scores are tied: `official` walks through ties one by one with bona fide first (so
  constant scores give 1.0), `grouped` puts them on one point, `interpolated` and `hull` read lines between points.
- **Sets 17 and 18** are left out: NaN scores are refused here, and one class has no EER.
- **t-EER**: the official package prints percent, we return the fraction. With scores of one's own ASV the package reads
  the spoof *miss* rate where the false-accept rate is meant; `min_t_dcf` takes the false-accept rate.

"""

PUBLISHED = """## Real scores

Four systems on 50,000 trials of the ASVspoof 5 evaluation, as their author published them (repository
Jmqcooper1/asvspoof5-domain-invariant-cm, commit ce86df2). AUC is the same for all. The published minDCF has the
document's literal parameters and steps into tied scores in whatever order a sort leaves them (doing the same gives
0.99965 and 0.99471 again), through points that no threshold reaches; ours does not. The published EER is an
interpolation; under saturation (a third of the scores of `w2v2_dann_v2` are exactly 1.0) every tie rule gives another
number, which is why `-p asvspoof5` prints two and says so.

"""


def main(folder: Path, packages: Path | None = None) -> None:
    """Write the page; the part made with packages stays as it was without them."""
    reference = folder / "official_reference"
    data = sets(reference)
    tables = official(data) + engine(reference) + tandem(reference) + tandem_files(reference / "tandem") + others(data)
    before = PAGE.read_text(encoding="utf-8").partition(LIVE)
    run = live(packages) if packages is not None else before[1] + before[2]
    PAGE.write_text(HEAD + tables + WHY + PUBLISHED + published(folder / "scores") + run, encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
