"""Tandem evaluation from the official files as they are: every number of the official code, overall and per slice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.results import Estimate, Results

FOLDER = Path(__file__).parent.parent / "official_reference" / "tandem"
EXPECTED: dict[str, dict[str, Any]] = json.loads((FOLDER / "expected.json").read_text())
CLOSE = {"abs": 1e-9, "rel": 1e-9}
POOLED = "Pooled"


def sets(family: str) -> pytest.MarkDecorator:
    """One test a set of a family."""
    return pytest.mark.parametrize("name", EXPECTED[family])


def official(cell: dict[str, Any], figure: str) -> list[float | None]:
    """The official number, and that of exact arithmetic where rounding inside the official code decides a tie."""
    exact = f"{figure}_exact_arithmetic"
    return [cell[figure], *([cell[exact]] if exact in cell else [])]


def assert_equal(found: Estimate, cell: dict[str, Any], figure: str) -> None:
    expected = official(cell, figure)
    if expected[0] is None:
        assert found.value is None, (cell, figure, found)
    else:
        assert found.value is not None, (cell, figure, found.note)
        assert any(found.value == pytest.approx(value, **CLOSE) for value in expected), (cell, figure, found.value)


def in_slice(results: Results, metric: str, **wanted: str) -> Estimate | None:
    """The estimate of one slice; None if the evaluation has no such slice."""
    fits = [e for e in results if e.metric == metric and e.average is None and dict(e.slice) == wanted]
    assert len(fits) < 2
    return fits[0] if fits else None


def cells(expected: list[dict[str, Any]], row: str, column: str) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Cells with the slice that each is: `row` and `column` name our columns."""
    for cell in expected:
        values = {row: cell["row"], column: "NONE" if cell["col"] == "-" else cell["col"]}
        yield cell, {name: value for name, value in values.items() if value != POOLED}


@sets("track2_tandem")
def test_track_two_in_tandem_with_a_plain_key(name: str) -> None:
    files, expected = FOLDER / "track2_tandem" / name, EXPECTED["track2_tandem"][name]
    if "plain_key" not in expected:
        pytest.skip("dummy trials exist in the full key alone")
    found = hm.evaluate(
        files / "sasv_scores.tsv", files / "sasv_key.tsv", "asvspoof5-track2", bootstrap=0, settings="none"
    )
    for metric in ("min_a_dcf", "min_t_dcf", "t_eer"):
        assert_equal(found.one(metric), expected["plain_key"], metric)


FULL = {"min_a_dcf": "min_a_dcf", "t_eer": "t_eer", "min_t_dcf": "min_t_dcf_as_published"}


@sets("track2_tandem")
def test_track_two_in_tandem_with_the_full_key_by_attack_and_codec(name: str) -> None:
    files, expected = FOLDER / "track2_tandem" / name, EXPECTED["track2_tandem"][name]["full_key"]["cells"]
    formula = "min_t_dcf(definition=formula)"
    found = hm.evaluate(
        files / "sasv_scores.tsv",
        files / "sasv_key_full.txt",
        "asvspoof5-track2",
        metrics=[*FULL, formula],
        by=["attack", "codec", "attack,codec"],
        bootstrap=0,
        settings="none",
        asv=str(files / "asv_org.tsv"),
        **({"where": {"track_2_tag": ["eval"]}, "allow_missing": True} if name == "06_missing" else {}),
    )
    assert any("as the official package" in w or "official package" in w for w in found.warnings)
    n_seen = 0
    for cell, where in cells(expected, "attack", "codec"):
        for metric, figure in {**FULL, formula: "min_t_dcf_false_acceptance"}.items():
            own = in_slice(found, metric, **where)
            if own is None:
                assert cell[figure] is None
                continue
            assert_equal(own, cell, figure)
            n_seen += 1
    assert n_seen > 3


@sets("track2_single")
def test_track_two_with_one_score(name: str) -> None:
    files, expected = FOLDER / "track2_single" / name, EXPECTED["track2_single"][name]
    if "plain_key" in expected:
        found = hm.evaluate(
            files / "sasv_scores.tsv", files / "sasv_key.tsv", "asvspoof5-track2-single", bootstrap=0, settings="none"
        )
        assert_equal(found.one("min_a_dcf"), expected["plain_key"], "min_a_dcf")
    sliced = hm.evaluate(
        files / "sasv_scores.tsv",
        files / "sasv_key_full.txt",
        "asvspoof5-track2-single",
        metrics=["min_a_dcf"],
        by=["attack", "codec", "attack,codec"],
        bootstrap=0,
        settings="none",
        **({"where": {"track_2_tag": ["eval"]}, "allow_missing": True} if name == "06_missing" else {}),
    )
    for cell, where in cells(expected["full_key"]["cells"], "attack", "codec"):
        own = in_slice(sliced, "min_a_dcf", **where)
        if own is None:
            assert cell["min_a_dcf"] is None
        else:
            assert_equal(own, cell, "min_a_dcf")


SUBSETS = {
    "eval": {"subset": ["eval"]},
    "progress": {"subset": ["progress"]},
    "hidden": {"subset": ["hidden"]},
    "hidden1_PA": {"subset": ["hidden"], "trim": ["notrim"]},
    "hidden2_PA": {"subset": ["hidden"], "trim": ["trim"]},
}


def of_2021(track: str, name: str, subset: str, metrics: list[str], by: list[str], with_asv: bool = True) -> Results:
    files = FOLDER / f"asvspoof2021_{track}" / name
    keys = files / "keys" / track.upper()
    asv = {
        "asv": str(keys / "ASV" / "ASVTorch_Kaldi" / "score.txt"),
        "asv_key": str(keys / "ASV" / "trial_metadata.txt"),
    }
    return hm.evaluate(
        files / "score.txt",
        keys / "CM" / "trial_metadata.txt",
        f"asvspoof2021-{track}",
        metrics=metrics,
        by=by,
        bootstrap=0,
        settings="none",
        where=SUBSETS[subset],
        **(asv if with_asv else {}),
    )


@sets("asvspoof2021_la")
def test_logical_access_by_attack_and_codec_in_every_subset(name: str) -> None:
    for subset, expected in EXPECTED["asvspoof2021_la"][name]["subsets"].items():
        found = of_2021("la", name, subset, ["min_t_dcf", "eer"], ["attack", "codec", "attack,codec"])
        check_cells(found, expected["cells"], "attack", "codec", ("min_t_dcf", "eer"))


def check_cells(
    found: Results, expected: list[dict[str, Any]], row: str, column: str, metrics: tuple[str, ...], least: int = 1
) -> None:
    n_seen = 0
    for cell, where in cells(expected, row, column):
        for metric in metrics:
            own = in_slice(found, metric, **where)
            if own is None:
                # a grouping with a single value is the same as all trials, and is not repeated as a table
                assert (
                    cell[metric] is None
                    or len({c["row"] for c in expected}) <= 2
                    or len({c["col"] for c in expected}) <= 2
                )
                continue
            assert_equal(own, cell, metric)
            n_seen += 1
    assert n_seen >= least


@sets("asvspoof2021_df")
def test_deepfakes_by_vocoder_and_compression_in_every_subset(name: str) -> None:
    for subset, expected in EXPECTED["asvspoof2021_df"][name]["subsets"].items():
        found = of_2021("df", name, subset, ["eer"], ["vocoder", "codec", "vocoder,codec"], with_asv=False)
        check_cells(found, expected["cells"], "vocoder", "codec", ("eer",))


ROOM = {"R": "room", "M": "microphone", "D": "talker_distance"}
ATTACKER = {
    "r": "attack_room", "m": "attack_microphone", "c": "attack_to_speaker", "s": "replay_device", "d": "device_distance",
}  # fmt: skip


@sets("asvspoof2021_pa")
def test_physical_access_by_room_and_attacker_in_every_subset(name: str) -> None:
    for subset, expected in EXPECTED["asvspoof2021_pa"][name]["subsets"].items():
        by = [*ROOM.values(), *ATTACKER.values(), *(f"{a},{b}" for a in ROOM.values() for b in ATTACKER.values())]
        found = of_2021("pa", name, subset, ["min_t_dcf", "eer"], by)
        n_seen = 0
        for cell in expected["cells"]:
            where = {} if cell["row"] == POOLED else {ROOM[cell["row"][0]]: cell["row"]}
            where |= {} if cell["col"] == POOLED else {ATTACKER[cell["col"][0]]: cell["col"]}
            for metric in ("min_t_dcf", "eer"):
                own = in_slice(found, metric, **where)
                if own is not None:
                    assert_equal(own, cell, metric)
                    n_seen += 1
        assert n_seen >= len(expected["cells"])


@sets("asvspoof2019_la")
def test_logical_access_of_2019_with_pooled_rates_of_the_asv(name: str) -> None:
    files, expected = FOLDER / "asvspoof2019_la" / name, EXPECTED["asvspoof2019_la"][name]
    found = hm.evaluate(
        files / "cm_scores.txt",
        None,
        "asvspoof2019-la",
        by=["attack"],
        bootstrap=0,
        settings="none",
        asv=str(files / "asv_scores.txt"),
    )
    assert_equal(found.one("eer"), expected, "eer")
    assert_equal(found.one("min_t_dcf_legacy"), expected, "min_t_dcf_legacy")
    assert_equal(found.one("min_t_dcf"), expected, "min_t_dcf_revised")
    assert any("no ids" in w and "held fixed" in w for w in found.warnings)
    for attack, value in expected["eer_by_attack"].items():
        assert_equal(found.one("eer", attack=attack), {"eer": value}, "eer")
    for attack, values in expected["by_attack_pooled_asv"].items():
        assert_equal(found.one("min_t_dcf_legacy", attack=attack), values, "legacy")
        assert_equal(found.one("min_t_dcf", attack=attack), values, "revised")


@sets("asvspoof2019_la")
def test_logical_access_of_2019_with_rates_of_each_attack(name: str) -> None:
    files, expected = FOLDER / "asvspoof2019_la" / name, EXPECTED["asvspoof2019_la"][name]
    own = {"legacy": "min_t_dcf_legacy(asv=own)", "revised": "min_t_dcf(asv=own)"}
    found = hm.evaluate(
        files / "cm_scores.txt",
        None,
        "asvspoof2019-la",
        metrics=list(own.values()),
        by=["attack"],
        bootstrap=0,
        settings="none",
        asv=str(files / "asv_scores.txt"),
    )
    assert_equal(found.one(own["legacy"]), expected, "min_t_dcf_legacy")
    for attack, values in expected["by_attack_own_asv"].items():
        for kind, metric in own.items():
            assert_equal(found.one(metric, attack=attack), values, kind)


@sets("sasv2022")
def test_the_challenge_of_2022(name: str) -> None:
    files, expected = FOLDER / "sasv2022" / name, EXPECTED["sasv2022"][name]
    found = hm.evaluate(
        files / "scores.txt", files / "trials.txt", "sasv2022", by=["attack"], bootstrap=0, settings="none"
    )
    for metric in ("sasv_eer", "sv_eer", "spf_eer"):
        assert_equal(found.one(metric), expected, metric)
    assert_equal(found.one("min_a_dcf"), expected, "min_a_dcf") if "min_a_dcf" in expected else None
    assert found.one("min_a_dcf").value == pytest.approx(expected["min_a_dcf_defaults_of_a_dcf_package"], **CLOSE)
    for attack, values in expected["by_attack"].items():
        for metric, value in values.items():
            own = in_slice(found, metric, attack=attack)
            if own is not None:
                assert_equal(own, {metric: value}, metric)


@sets("sasv2022")
def test_the_cost_of_2022_with_the_constants_of_asvspoof_5(name: str) -> None:
    files, expected = FOLDER / "sasv2022" / name, EXPECTED["sasv2022"][name]
    costs = "min_a_dcf(p_target=0.9405, p_nontarget=0.0095, p_spoof=0.05, c_fa_spoof=10)"
    found = hm.evaluate(
        files / "scores.txt", files / "trials.txt", "sasv2022", metrics=[costs], bootstrap=0, settings="none"
    )
    assert found.estimates[0].value == pytest.approx(expected["min_a_dcf_constants_of_asvspoof5"], **CLOSE)


def other(path: Path, folder: Path) -> Path:
    """The scores of a second system: those of the first, every third one lower."""
    rows = [line.split() for line in path.read_text().splitlines()]
    file = folder / "other.txt"
    file.write_text("".join(f"{item} {float(score) - (i % 3)}\n" for i, (item, score) in enumerate(rows)))
    return file


@pytest.mark.parametrize("verb", [hm.compare, hm.rank])
def test_two_systems_are_compared_by_the_numbers_that_each_has_alone(verb: Any, tmp_path: Path) -> None:
    files = FOLDER / "asvspoof2021_la" / "01_plain"
    keys = files / "keys" / "LA"
    asked = {
        "asv": str(keys / "ASV" / "ASVTorch_Kaldi" / "score.txt"),
        "asv_key": str(keys / "ASV" / "trial_metadata.txt"),
    }
    key, second = keys / "CM" / "trial_metadata.txt", other(files / "score.txt", tmp_path)
    alone = [
        hm.evaluate(
            path, key, "asvspoof2021-la", metrics=["min_t_dcf"], by=["codec"], bootstrap=0, settings="none", **asked
        )
        for path in (files / "score.txt", second)
    ]
    from hitmiss.core.design import Design
    from hitmiss.core.read_spec import ReadSpec
    from hitmiss.evaluation.protocol import compare_trials, find_protocol, read_trials

    protocol = find_protocol("asvspoof2021-la")
    paths = {"a": files / "score.txt", "b": second, **({"c": second} if verb is hm.rank else {})}
    runs = {name: read_trials(path, key, protocol, ReadSpec().changed(**asked)) for name, path in paths.items()}
    made = compare_trials(runs, Design.of(["min_t_dcf"], by=["codec"], bootstrap=50, protocol=protocol))
    rows = (
        [d for d in made if d.average is None]
        if verb is hm.compare
        else [d.difference for d in made.duels if (d.a, d.b) == ("a", "b")]
    )
    seen = 0
    for d in rows:
        if d.average is None:
            pair = [one.one("min_t_dcf", **dict(d.slice)).value for one in alone]
            assert [d.a, d.b] == pytest.approx(pair, **CLOSE)
            seen += 1
    assert seen >= 8


def test_files_of_another_folder_give_the_same_signature_and_the_claim_is_verified(tmp_path: Path) -> None:
    import shutil

    files = FOLDER / "asvspoof2019_la" / "01_plain"
    moved = tmp_path / "moved"
    shutil.copytree(files, moved)
    made = [
        hm.evaluate(
            folder / "cm_scores.txt",
            None,
            "asvspoof2019-la",
            bootstrap=0,
            settings="none",
            asv=str(folder / "asv_scores.txt"),
        )
        for folder in (files, moved)
    ]
    assert made[0].signature == made[1].signature
    made[1].save(str(tmp_path / "claim.json"))
    assert str(moved) not in (tmp_path / "claim.json").read_text()
    claim = str(tmp_path / "claim.json")
    assert hm.verify(claim, str(files / "cm_scores.txt"), asv=str(files / "asv_scores.txt")).holds
    rows = (files / "asv_scores.txt").read_text().splitlines()
    (tmp_path / "asv_scores.txt").write_text("\n".join(rows[:-5]))  # the rates of the verifier are other ones
    assert not hm.verify(claim, str(files / "cm_scores.txt"), asv=str(tmp_path / "asv_scores.txt")).holds


def test_a_comparison_is_verified_with_the_scores_of_the_verifier(tmp_path: Path) -> None:
    files = FOLDER / "asvspoof2021_la" / "01_plain"
    keys = files / "keys" / "LA"
    asked = {
        "asv": str(keys / "ASV" / "ASVTorch_Kaldi" / "score.txt"),
        "asv_key": str(keys / "ASV" / "trial_metadata.txt"),
    }
    key, second = str(keys / "CM" / "trial_metadata.txt"), str(other(files / "score.txt", tmp_path))
    words = [str(files / "score.txt"), second, "--key", key, "-p", "asvspoof2021-la", "-m", "min_t_dcf"]
    flags = [word for name, path in asked.items() for word in (f"--{name.replace('_', '-')}", path)]
    assert run(["compare", *words, *flags, "--bootstrap", "50", "-o", str(tmp_path / "claim.json")]) == 0
    assert str(keys) not in (tmp_path / "claim.json").read_text()
    assert hm.verify(str(tmp_path / "claim.json"), [str(files / "score.txt"), second], key, **asked).holds


def test_the_scores_of_a_verifier_are_asked_for_where_they_are_needed() -> None:
    files = FOLDER / "asvspoof2019_la" / "01_plain"
    found = hm.evaluate(files / "cm_scores.txt", None, "asvspoof2019-la", bootstrap=0, settings="none")
    assert "min_t_dcf" not in {e.metric for e in found} and any("--asv" in w for w in found.warnings)
    with pytest.raises(hm.UsageError) as refused:
        hm.evaluate(
            files / "cm_scores.txt", None, "asvspoof2019-la", metrics=["min_t_dcf"], bootstrap=0, settings="none"
        )
    assert refused.value.code == "no-asv"
    with pytest.raises(hm.UsageError) as unused:
        hm.evaluate(files / "cm_scores.txt", None, "asvspoof2019", bootstrap=0, settings="none", asv="x.txt")
    assert unused.value.code == "unused-asv"


def test_a_class_that_contradicts_the_label_is_refused(tmp_path: Path) -> None:
    files = FOLDER / "track2_tandem" / "01_plain"
    text = (files / "sasv_key.tsv").read_text().replace("\tspoof\tspoof", "\tspoof\ttarget", 1)
    (tmp_path / "key.tsv").write_text(text)
    with pytest.raises(hm.DataError) as refused:
        hm.evaluate(files / "sasv_scores.tsv", tmp_path / "key.tsv", "asvspoof5-track2", bootstrap=0, settings="none")
    assert refused.value.code == "bad-asv-label"


def test_streamed_trials_give_the_digits_of_memory() -> None:
    files = FOLDER / "asvspoof2021_la" / "01_plain"
    keys = files / "keys" / "LA"
    asked = {
        "asv": str(keys / "ASV" / "ASVTorch_Kaldi" / "score.txt"),
        "asv_key": str(keys / "ASV" / "trial_metadata.txt"),
    }
    whole = of_2021("la", "01_plain", "eval", ["min_t_dcf", "eer"], ["codec", "attack"])
    found = hm.evaluate_streamed(
        str(files / "score.txt"),
        "asvspoof2021-la",
        key=str(keys / "CM" / "trial_metadata.txt"),
        metrics=["min_t_dcf", "eer"],
        by=["codec", "attack"],
        reading=asked,
    )
    numbers = {(e.metric, tuple(e.slice.items()), e.average): e.value for e in whole}
    assert {(e.metric, tuple(e.slice.items()), e.average): e.value for e in found.results} == numbers


def test_validate_says_what_score_says(capsys: pytest.CaptureFixture[str]) -> None:
    files = FOLDER / "track2_tandem" / "01_plain"
    asked = [str(files / "sasv_scores.tsv"), "--key", str(files / "sasv_key_full.txt")]
    assert [run([verb, *asked, "-p", "asvspoof5-track2"]) for verb in ("validate", "score")] == [0, 0]
    plain = [str(files / "sasv_scores.tsv"), "--key", str(files / "sasv_key.tsv"), "-p", "asvspoof5"]
    capsys.readouterr()
    assert [run([verb, *plain]) for verb in ("validate", "score")] == [3, 3]
    assert capsys.readouterr().err.count("asvspoof5-track2-single") == 2


@sets("sasv2022")
def test_the_concurrent_tandem_error_of_2022(name: str) -> None:
    """Scores of the CM and of the ASV in the layout of T-EER, whose script takes a share of spoofs of one half."""
    files, expected = FOLDER / "sasv2022" / name, EXPECTED["sasv2022"][name]
    if "t_eer_concurrent_by_rho" not in expected:
        pytest.skip("the package gives none for this set")
    rows = {
        part: [line.split() for line in (files / f"{part}_scores.txt").read_text().splitlines()]
        for part in ("cm", "asv")
    }
    by_id = {(speaker, item): float(score) for speaker, item, _, _, score in rows["asv"]}
    kind = [row[3] for row in rows["cm"]]
    own = hm.metrics.t_eer(
        *(
            [[s for s, k in zip(scores, kind, strict=True) if k == name] for name in ("target", "nontarget", "spoof")]
            for scores in ([float(r[4]) for r in rows["cm"]], [by_id[r[0], r[1]] for r in rows["cm"]])
        ),
        ties="official",
    )
    value = expected["t_eer_concurrent_by_rho"]["0.5"]
    assert own == pytest.approx(value, **CLOSE) if value is not None else own != own


def test_every_verb_takes_tandem_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Score with a gap and units, verify, gate, report, compare and rank, on the official files of Track 2."""
    files = FOLDER / "track2_tandem" / "01_plain"
    first, second, third = files / "sasv_scores.tsv", tmp_path / "b.tsv", tmp_path / "c.tsv"
    head, *lines = first.read_text().splitlines()
    for path, by in ((second, 0.3), (third, 1.0)):
        rows = [line.split("\t") for line in lines]
        for i, row in enumerate(rows):
            row[2:] = [str(float(score) - by * (i % 4)) for score in row[2:]]
        path.write_text("\n".join([head, *("\t".join(row) for row in rows)]) + "\n")
    shared = ["--key", str(files / "sasv_key_full.txt"), "-p", "asvspoof5-track2"]
    metrics = ["-m", "min_a_dcf", "-m", "min_t_dcf", "-m", "t_eer", "-m", "sasv_eer"]
    drawn = ["--unit", "speaker", "--bootstrap", "60"]
    claim = str(tmp_path / "claim.json")
    assert run(["score", str(first), *shared, *metrics, *drawn, "--gap", "codec=NONE", "-o", claim]) == 0
    made = json.loads(Path(claim).read_text())["estimates"]
    whole = {e["metric"]: e for e in made if not e["slice"]}
    assert set(whole) == {"min_a_dcf", "min_t_dcf", "t_eer", "sasv_eer"}
    gaps = {e["metric"]: e["value"] for e in made if e["average"] == "gap"}
    for metric in ("min_a_dcf", "min_t_dcf"):
        sides = [
            hm.evaluate(
                first,
                files / "sasv_key_full.txt",
                "asvspoof5-track2",
                metrics=[metric],
                where={"codec": codecs},
                bootstrap=0,
                settings="none",
            )
            .one(metric)
            .value
            for codecs in (["NONE"], sorted(codecs_of(files) - {"NONE"}))
        ]
        assert gaps[metric] == pytest.approx(sides[1] - sides[0], **CLOSE)  # type: ignore[operator]
    assert run(["verify", claim, str(first), "--key", str(files / "sasv_key_full.txt")]) == 0
    assert run(["gate", claim, "--require", "min_a_dcf <= 0.9"]) == 0
    assert run(["gate", claim, "--require", "min_a_dcf.high <= 0.0001"]) == 1
    page = tmp_path / "report.html"
    assert run(["report", str(first), *shared, *metrics, *drawn, "-o", str(page)]) == 0
    text = page.read_text()
    assert "min a-DCF" in text or "min_a_dcf" in text
    capsys.readouterr()
    assert run(["compare", str(first), str(second), *shared, *metrics, *drawn, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {d["metric"] for d in shown["differences"]} >= {"min_a_dcf", "min_t_dcf", "t_eer", "sasv_eer"}
    assert run(["compare", str(first), str(second), str(third), *shared, "-m", "min_a_dcf", *drawn]) == 0


def codecs_of(files: Path) -> set[str]:
    """The codecs of the full key, by our names."""
    head, *lines = (files / "sasv_key_full.txt").read_text().splitlines()
    place = head.split().index("codec")
    return {"NONE" if line.split()[place] == "-" else line.split()[place] for line in lines}
