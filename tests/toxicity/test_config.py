"""Configuration files: YAML 1.2, nothing that runs, nothing that grows, no key that is silently ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitmiss.cli.main import run
from hitmiss.core.errors import UsageError
from hitmiss.io.config import MOST_BYTES, read_config, read_yaml
from hitmiss.protocols.toxicity import load_run


def config(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_norwegian_is_a_language_and_a_number_is_a_number(tmp_path: Path) -> None:
    found = read_config(config(tmp_path, "data: {languages: [en, no, on]}\nevaluation: {default_threshold: 1e-3}\n"))
    assert found.data.languages == ["en", "no", "on"] and found.evaluation.default_threshold == 1e-3


def test_sections_about_training_are_let_be(tmp_path: Path) -> None:
    text = "model: {name: x}\ntraining: {lr: 0.1}\ndata: {languages: [en], train: a.csv}\nevaluation: {metrics: [f1]}\n"
    assert read_config(config(tmp_path, text)).data.languages == ["en"]
    assert read_config(config(tmp_path, "")).data.languages is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("evaluation: {default_treshold: 0.4}", "did you mean 'default_threshold'"),
        ("evalution: {default_threshold: 0.4}", "did you mean 'evaluation'"),
        ("evaluation: {default_threshold: 1.4}", "less than or equal to 1"),
        ("evaluation: {default_threshold: yes}", "default_threshold"),
        ("data: {languages: en}", "data.languages"),
        ("data: {languages: [en, 1]}", "write them in quotes"),
        ("data: 1\ndata: 2", "duplicate key"),
        ("a: &x [1]\nb: *x", "aliases"),
        ("a: !!python/object/apply:os.system [id]", "not a YAML file"),
        ("- a\n- b", "mapping of names"),
        ("a: [", "line 1"),
        ("a: " + "[" * 50 + "]" * 50, "nested deeper"),
        ("\ta: 1", "not a YAML file"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_config(config(tmp_path, text))
    assert said in str(caught.value) and "config.yaml" in str(caught.value) and "\n" not in str(caught.value)


def test_huge_and_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="larger than"):
        read_yaml(config(tmp_path, "a: " + "x" * MOST_BYTES))
    with pytest.raises(UsageError, match="no configuration file"):
        read_yaml(tmp_path / "none.yaml")


def test_a_bomb_of_aliases_does_not_go_off(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(UsageError, match="aliases"):
        read_yaml(config(tmp_path, "\n".join(lines)))


def test_flags_beat_the_file_and_the_file_beats_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for language in ("en", "no", "es"):
        (tmp_path / f"run_{language}.csv").write_text("id,y_true,y_prob\na,1,0.45\nb,0,0.2\n")
    text = f"data: {{languages: ['no', en]}}\nevaluation: {{default_threshold: 0.4, output_dir: '{tmp_path}'}}\n"
    words = ["toxicity", "--config", str(config(tmp_path, text)), "--run_tag", "run", "--documented"]

    def languages() -> list[str]:
        return [line.split(",")[0] for line in capsys.readouterr().out.splitlines()[1:]]

    assert run(words) == 0
    seen = capsys.readouterr()
    assert [line.split(",")[0] for line in seen.out.splitlines()[1:]] == ["no", "en", "macro", "micro"]
    assert ",1.0000,1.0000,1.0000,1.0000,1.0000" in seen.out  # decided at 0.4
    assert run([*words, "--languages", "es"]) == 0
    assert languages() == ["es", "macro", "micro"]
    assert run([*words, "--threshold", "0.6"]) == 0
    assert "1.0000,0.0000,0.0000,0.0000,0.5000" in capsys.readouterr().out
    assert load_run(tmp_path, "run").groups == ("en", "es", "no")


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("evaluation: {metrics: [roc_auc, f1, AUC]}", 0, ""),
        ("evaluation: {metrics: [roc_auc, bleu]}", 2, "bleu"),
        ("evaluation: {threshold_metric: roc_auc}", 2, "no threshold changes"),
        ("evaluation: {threshold_metric: f2}", 2, "f2"),
        ("evaluation: {threshold_metric: mcc}", 0, "--maximize mcc"),
        ("evaluation: {optimize_threshold: true}", 0, "--maximize f1"),
        ("evaluation: {optimize_threshold: false, threshold_metric: f1}", 0, ""),
    ],
)
def test_what_the_configuration_asks_for_is_given_refused_or_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: int, said: str
) -> None:
    (tmp_path / "r_en.csv").write_text("id,y_true,y_prob\n1,1,0.9\n2,0,0.2\n3,1,0.4\n4,0,0.6\n")
    where = ["--pred_dir", str(tmp_path), "--run_tag", "r", "--languages", "en", "--bootstrap", "0"]
    assert run(["toxicity", "--config", str(config(tmp_path, text)), *where]) == code
    err = capsys.readouterr().err
    assert said in err and ("--maximize" in err) == said.startswith("--maximize")
    (tmp_path / "r_en.csv").write_text("id,y_true,y_prob,best_threshold\n1,1,0.9,0.3\n2,0,0.2,0.3\n")
    if code == 0:  # thresholds that the files bring are those that were chosen
        assert run(["toxicity", "--config", str(config(tmp_path, text)), *where]) == 0
        assert "--maximize" not in capsys.readouterr().err
