"""Names: metrics and plug-ins, and what happens when one is unknown, taken or broken."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import hitmiss as hm
from hitmiss import registry
from hitmiss.errors import UnknownName, UsageError
from hitmiss.registry import all_metrics, find_metric, forget, load_plugin_file, metric, resolve
from hitmiss.spec import Spec


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    before = all_metrics()
    yield
    for name in set(all_metrics()) - set(before):
        forget(name)
    assert all_metrics() == before


def test_every_public_metric_function_is_registered_under_its_name() -> None:
    for name, entry in all_metrics().items():
        assert entry.name == name == entry.function.__name__
        assert getattr(hm.metrics, name) is entry.function
        assert entry.best in ("low", "high")
        assert entry.range[0] < entry.range[1]
        assert f"Best: {entry.best}" in (entry.function.__doc__ or "") or name == "eer_threshold"


def test_a_form_takes_the_settings_of_its_metric() -> None:
    for name in all_metrics():
        _, entry, settings = resolve(name)
        if entry.form is not None:
            assert entry.form(**settings) is not None


def test_settings_are_defaults_overlaid() -> None:
    spec, entry, settings = resolve("min_dcf(c_fa=1)")
    assert (spec, entry.name) == (Spec.of("min_dcf", c_fa=1), "min_dcf")
    assert settings == {"p_target": 0.95, "c_miss": 1.0, "c_fa": 1, "normalize": True}
    assert entry.defaults["c_fa"] == 10.0


def test_unknown_names_come_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="unknown metric 'min_dfc'; did you mean 'min_dcf'"):
        find_metric("min_dfc")
    with pytest.raises(UnknownName, match="unknown setting of min_dcf 'p_taget'; did you mean 'p_target'"):
        resolve("min_dcf(p_taget=0.5)")
    with pytest.raises(UnknownName, match=r"unknown setting of roc_auc 'x'. Known: none"):
        resolve("roc_auc(x=1)")


def test_a_metric_of_ones_own() -> None:
    @metric(best="high", range=(0.0, 10.0), kinds=("llr",))
    def half(score: Any, weight: Any = None, *, scale: float = 0.5) -> float:
        return scale * float(sum(score)) + (0.0 if weight is None else 1.0)

    entry = find_metric("half")
    assert (entry.columns, entry.defaults, entry.best, entry.kinds) == (("score",), {"scale": 0.5}, "high", ("llr",))
    assert entry.function is half


def test_a_metric_must_take_weights_and_known_columns() -> None:
    with pytest.raises(UsageError, match="'no_weight' must take weight=None"):

        @metric(best="low")
        def no_weight(label: Any, score: Any) -> float:
            return float(len(label) + len(score))

    with pytest.raises(UnknownName, match="did you mean 'score'"):

        @metric(best="low")
        def odd_column(scores: Any, weight: Any = None) -> float:
            return float(len(scores) + len(weight))


def test_a_taken_name_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'eer' exists already, from hitmiss.metrics.detection"):

        @metric(best="low")
        def eer(score: Any, weight: Any = None) -> float:
            return float(len(score) + len(weight))


def test_readers_and_protocols_by_name() -> None:
    registry.add("reader", "only_for_this_test", reader := object())
    try:
        registry.add("reader", "only_for_this_test", reader)
        assert registry.find("reader", "only_for_this_test") is reader
        with pytest.raises(UsageError, match="exists already"):
            registry.add("reader", "only_for_this_test", object())
        with pytest.raises(UnknownName, match="did you mean 'only_for_this_test'"):
            registry.find("reader", "only_for_that_test")
    finally:
        registry._others["reader"].pop("only_for_this_test")


# --- plug-in files ----------------------------------------------------------------------------------------------

PLUGIN = """
from hitmiss import metric

@metric(best="low")
def {name}(label, weight=None):
    return float(len(label))
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))
    return path


def test_a_plugin_file_adds_its_metrics(tmp_path: Path) -> None:
    load_plugin_file(write(tmp_path / "mine.py", PLUGIN.format(name="row_count")))
    assert find_metric("row_count").function([1, 0, 1]) == 3.0


def test_a_plugin_may_be_loaded_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.py", PLUGIN.format(name="row_count"))
    load_plugin_file(path)
    load_plugin_file(str(path))
    assert "row_count" in all_metrics()


def test_two_files_of_one_name_do_not_hide_each_other(tmp_path: Path) -> None:
    load_plugin_file(write(tmp_path / "a" / "mine.py", PLUGIN.format(name="row_count")))
    with pytest.raises(UsageError, match=r"mine.py could not be loaded: .*'row_count' exists already"):
        load_plugin_file(write(tmp_path / "b" / "mine.py", PLUGIN.format(name="row_count")))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def half(", "SyntaxError"),
        ("raise RuntimeError('not today')", "RuntimeError: not today"),
        ("import no_such_package", "No module named 'no_such_package'"),
        (PLUGIN.format(name="eer"), "'eer' exists already"),
    ],
)
def test_a_broken_plugin_file_is_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=rf"broken.py could not be loaded: .*{says}"):
        load_plugin_file(write(tmp_path / "broken.py", text))
    assert not [name for name in sys.modules if name.startswith("hitmiss_plugin_broken")]


def test_a_plugin_that_is_no_python_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no plug-in file"):
        load_plugin_file(tmp_path / "none.py")
    with pytest.raises(UsageError, match="not a Python file"):
        load_plugin_file(write(tmp_path / "mine.txt", ""))


def run(code: str, folder: Path) -> str:
    """Run code in a process of its own, with a folder of installed packages."""
    begin = f"import sys; sys.path.insert(0, {str(folder)!r})\n"
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", begin + dedent(code)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_a_name_taken_before_the_built_ins_are_loaded(tmp_path: Path) -> None:
    """The fault is the newcomer's, and the built-in metrics are all there afterwards."""
    said = run(
        """
        import hitmiss
        try:
            @hitmiss.metric(best="low")
            def eer(label, weight=None):
                return 0.0
        except hitmiss.UsageError as error:
            print(error)
        print(hitmiss.registry.find_metric("eer").function.__module__)
        """,
        tmp_path,
    )
    assert said.splitlines() == [
        "metric 'eer' exists already, from hitmiss.metrics.detection",
        "hitmiss.metrics.detection",
    ]


def installed(folder: Path, name: str, target: str) -> None:
    """A package as installers leave it, with one entry point."""
    write(folder / f"{name}-1.0.dist-info" / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    write(folder / f"{name}-1.0.dist-info" / "entry_points.txt", f"[hitmiss.plugins]\n{name} = {target}\n")


def test_entry_points_add_metrics_and_a_broken_one_only_warns(tmp_path: Path) -> None:
    installed(tmp_path, "sound", "sound_metrics")
    write(tmp_path / "sound_metrics.py", PLUGIN.format(name="row_count"))
    installed(tmp_path, "absent", "no_such_module")
    installed(tmp_path, "raising", "raising_metrics")
    write(tmp_path / "raising_metrics.py", "raise RuntimeError('not today')")
    said = run(
        """
        from hitmiss.registry import all_metrics
        print("row_count" in all_metrics(), "eer" in all_metrics())
        all_metrics()
        """,
        tmp_path,
    )
    assert said.startswith("True True\n")
    assert said.count("the plug-in 'raising' could not be loaded: not today") == 1
    assert said.count("the plug-in 'absent' could not be loaded") == 1
    assert "plug-in 'sound'" not in said


# --- the front door ---------------------------------------------------------------------------------------------


def test_the_public_names() -> None:
    assert hm.__all__ == sorted(hm.__all__)
    assert dir(hm) == hm.__all__
    assert set(hm.__all__) == {*hm._HOMES, "__version__"}


@pytest.mark.parametrize("name", hm.__all__)
def test_a_public_name_can_be_had(name: str) -> None:
    assert getattr(hm, name) is not None


@pytest.mark.parametrize("name", hm.metrics.__all__)
def test_a_public_metric_can_be_had(name: str) -> None:
    assert callable(getattr(hm.metrics, name))


def test_other_names_cannot() -> None:
    with pytest.raises(AttributeError, match="no attribute 'mesure'"):
        _ = hm.mesure


def test_metrics_are_listed_in_order() -> None:
    assert hm.metrics.__all__ == sorted(hm.metrics.__all__)
    assert list(all_metrics()) == sorted(all_metrics())
