"""Runs as users write them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hitmiss.claims.open import is_results, name_runs, open_run, runs_inside, split_choice
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.results import Estimate, Results
from hitmiss.core.trials import Trials, stack
from hitmiss.evaluation.fitting import fitting
from hitmiss.evaluation.protocol import find_protocol


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = [f"u{i},{'real' if i % 2 else 'fake'},{i},{'m1' if i < 4 else 'm2'}" for i in range(8)]
    (tmp_path / "scores.csv").write_text("\n".join(["id,label,score,model", *rows]) + "\n")
    return tmp_path / "scores.csv"


def test_a_run_is_chosen_by_columns(table: Path) -> None:
    assert len(open_run(str(table), None, None, ReadSpec(positive="real"))) == 8
    assert open_run(f"{table}[model=m2]", None, None, ReadSpec(positive="real")).items == ["u4", "u5", "u6", "u7"]


def test_unknown_columns_and_values_are_errors(table: Path) -> None:
    with pytest.raises(UnknownName, match="'modell'; did you mean 'model'"):
        open_run(f"{table}[modell=m2]", None, None, ReadSpec(positive="real"))
    with pytest.raises(UnknownName, match=r"'m3'\. Known: m1, m2"):
        open_run(f"{table}[model=m3]", None, None, ReadSpec(positive="real"))
    with pytest.raises(UsageError, match="choose a run by column=value"):
        split_choice("scores.csv[model=]")


def test_a_file_may_have_brackets_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "run[seed=1]"
    path.write_text("")
    assert split_choice(str(path)) == (str(path), {})


def test_results_are_no_trials(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    Results((Estimate("eer", 0.1),)).save(path)
    assert is_results(path)
    with pytest.raises(DataError, match="holds numbers, not trials"):
        open_run(str(path), None, None, ReadSpec())
    (tmp_path / "other.json").write_text(json.dumps([1]))
    (tmp_path / "broken.json").write_text("{")
    assert not is_results(tmp_path / "other.json") and not is_results(tmp_path / "broken.json")
    assert not is_results(tmp_path / "absent.json")


def test_names_are_as_long_as_they_must_be() -> None:
    assert name_runs(["x/a.tsv", "x/b.tsv"]) == ["a.tsv", "b.tsv"]
    assert name_runs(["main/s.tsv", "new/s.tsv"]) == ["main/s.tsv", "new/s.tsv"]
    assert name_runs(["s.tsv", "s.tsv"]) == ["s.tsv (1)", "s.tsv (2)"]


def test_runs_inside_one_file() -> None:
    one = Trials.of([1, 0], [1.0, 0.0])
    runs = runs_inside(stack({m: stack(dict.fromkeys("12", one), "trial") for m in ("m1", "m2")}, "model"))
    assert list(runs) == ["m1", "m2"] and [len(t) for t in runs.values()] == [4, 4]
    assert runs_inside(one) == {}


def test_metrics_of_a_protocol_that_fit() -> None:
    protocol = find_protocol("asvspoof5")
    raw = Trials.of([1, 0], [1.0, 0.0])
    fits, rest = fitting(list(protocol.metrics), raw)
    assert "eer" in fits and "cllr" in rest
    assert "cllr" in fitting(list(protocol.metrics), raw.retitle(score_kind="llr"))[0]
