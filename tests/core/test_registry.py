"""Names: metrics and plug-ins, and what happens when one is unknown, taken or broken."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import hitmiss as hm
from hitmiss.core import registry
from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.metric_spec import MetricSpec
from hitmiss.core.registry import all_metrics, find_metric, forget, load_plugin_file, metric, resolve


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    before = all_metrics()
    yield
    for name in set(all_metrics()) - set(before):
        forget(name)
    assert all_metrics() == before


def test_every_public_metric_function_is_registered_under_its_name() -> None:
    for name, entry in all_metrics().items():
        assert entry.name == name == entry.function.__name__.removesuffix("_of_trials")
        public = getattr(hm.metrics, name)
        # three metrics of trials have a documented namesake that takes the scores of each class
        assert public is entry.function or public.__module__ == "hitmiss.metrics.tandem"
        assert entry.best in ("low", "high")
        assert entry.range[0] < entry.range[1]
        best = "neither" if entry.two_sided and "Best: neither" in (entry.function.__doc__ or "") else entry.best
        assert f"Best: {best}" in (entry.function.__doc__ or "") or name == "eer_threshold"


def test_a_form_takes_the_settings_of_its_metric() -> None:
    for name in all_metrics():
        _, entry, settings = resolve(name)
        if entry.form is not None:
            assert entry.form(**settings) is not None


def test_settings_are_defaults_overlaid() -> None:
    spec, entry, settings = resolve("min_dcf(c_fa=1)")
    assert (spec, entry.name) == (MetricSpec.of("min_dcf", c_fa=1), "min_dcf")
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


def test_a_metric_must_take_weights() -> None:
    with pytest.raises(UsageError, match="'no_weight' must take weight=None"):

        @metric(best="low")
        def no_weight(label: Any, score: Any) -> float:
            return float(len(label) + len(score))


def test_a_metric_may_use_columns_of_its_own() -> None:
    """Numbers come as numbers, texts as texts; both ways of drawing replicates work as for our metrics."""

    @metric(best="low", range=(0.0, 100.0))
    def mean_seconds_of(duration: Any, site: Any, weight: Any = None, *, where: str = "a") -> float:
        weights = np.ones(len(site)) if weight is None else np.asarray(weight, dtype=float)
        inside = np.asarray(site) == where
        return float(np.average(np.asarray(duration)[inside], weights=weights[inside]))

    rng = np.random.default_rng(0)
    duration, site = rng.exponential(2.0, 400), np.array(["a", "b"] * 200)
    speaker = [f"s{i // 10}" for i in range(400)]
    header = hm.Header(numbers=("duration",))
    trials = hm.Trials.of([1, 0, 0, 1] * 100, header=header, duration=duration, site=site, speaker=speaker)
    for unit in (None, "speaker"):
        found = hm.measure(trials, ["mean_seconds_of", "mean_seconds_of(where=b)"], bootstrap=50, unit=unit)
        for e, expected in zip(found, (duration[::2].mean(), duration[1::2].mean()), strict=True):
            assert e.value == pytest.approx(expected)
            assert e.low is not None and e.high is not None and e.low < e.value < e.high


def test_a_column_that_the_trials_do_not_have_is_named() -> None:
    @metric(best="low")
    def odd_column(scores: Any, weight: Any = None) -> float:
        return float(len(scores) + len(weight))

    trials = hm.Trials.of([1, 0], [0.5, 0.25])
    with pytest.raises(UnknownName, match="column that odd_column needs 'scores'; did you mean 'score'"):
        hm.measure(trials, ["odd_column"])
    with pytest.raises(UsageError, match=r"hm\.decide\(trials, 0\.5\)") as refused:
        hm.measure(trials, ["f1"])
    assert refused.value.code == "no-decisions"


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
        forget("only_for_this_test", "reader")


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
        print(hitmiss.core.registry.find_metric("eer").function.__module__)
        """,
        tmp_path,
    )
    assert said.splitlines() == [
        "metric 'eer' exists already, from hitmiss.metrics.detection",
        "hitmiss.metrics.detection",
    ]


def test_a_metric_is_found_without_the_other_families(tmp_path: Path) -> None:
    """A name of the list imports its own family; a synonym and a name of no metric look through all of them."""
    said = run(
        """
        import sys
        from hitmiss.core.registry import all_metrics, find_metric, known_name
        print(find_metric("eer").name, [m in sys.modules for m in ("hitmiss.metrics.detection", "hitmiss.metrics.triage")])
        print(known_name("F1-fake"), known_name("nothing"), "hitmiss.metrics.triage" in sys.modules)
        print(find_metric("t_eer").function.__name__, "coverage" in all_metrics())
        """,
        tmp_path,
    )
    assert said.splitlines() == ["eer [True, False]", "f1_fake nothing True", "t_eer_of_trials True"]


@pytest.mark.parametrize("asked", ["from hitmiss.metrics import triage", "from hitmiss.metrics import *; coverage"])
def test_families_and_names_can_be_imported_first(asked: str, tmp_path: Path) -> None:
    assert run(f"{asked}\nprint('triage' in dir(sys.modules['hitmiss.metrics']))", tmp_path) == "True\n"


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
        from hitmiss.core.registry import all_metrics
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
    # A package of the same name would take the name's place as soon as somebody imports from it.
    folders = {path.name for path in Path(hm.__file__).parent.iterdir() if path.is_dir()}
    assert folders & set(hm.__all__) <= {"metrics"}


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
    assert set(hm.metrics.__all__) == set(hm.metrics.HOMES) <= set(dir(hm.metrics))
    assert list(all_metrics()) == sorted(all_metrics())


# --- one registry for every verb --------------------------------------------------------------------------------

EVERY_KIND = """
import numpy as np
from hitmiss.core import registry
from hitmiss.attacks.codecs import Codec
from hitmiss.attacks.codecs import Engine
from hitmiss.attacks.family import attack
from hitmiss.detection.detector import CallableDetector

@attack
def hum(x, strength, rng, *, sample_rate=16000, hertz=50.0, level=0.1):
    'Mains hum.'
    t = np.arange(x.shape[-1]) / sample_rate
    return x + strength * level * np.sin(2 * np.pi * hertz * t)

registry.add("codec", "thin", Codec("Y01", "thin", 8000, (64,), Engine("av", "pcm_mulaw", "pcm_mulaw", has_rate=False)))

def opened(text, how):
    'A detector that says a number.'
    return CallableDetector(lambda batch: np.full(len(batch), float(text)), name=f"says {text}", sample_rate=how.sample_rate)

registry.add("detector", "says", opened)
"""


@pytest.fixture
def every_kind(tmp_path: Path) -> Iterator[Path]:
    plugin = tmp_path / "every_kind.py"
    plugin.write_text(EVERY_KIND)
    yield plugin
    forget("hum", "attack")
    forget("thin", "codec")
    forget("says", "detector")


def test_what_a_plug_in_registers_is_listed_and_works(every_kind: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hitmiss.attacks.codecs import find_codec
    from hitmiss.attacks.config import PerturbationConfig
    from hitmiss.attacks.family import find_attack
    from hitmiss.cli.main import run
    from hitmiss.detection.opening import open_detector

    load_plugin_file(every_kind)
    for kind, name in (("attacks", "hum"), ("codecs", "thin"), ("detectors", "says")):
        assert run(["list", kind]) == 0
        assert name in capsys.readouterr().out
        assert run(["show", name]) == 0
        assert name in capsys.readouterr().out
    assert find_codec("Y01").name == "thin"
    assert open_detector("says:2.5", sample_rate=8000).outputs(np.zeros((3, 4))).tolist() == [2.5] * 3
    assert PerturbationConfig("hum", 0.5, 0.0, extra={"hertz": 60}).needs_model is False
    assert find_attack("hum").medium == "any"


def test_an_attack_of_a_plug_in_changes_records_along_time(every_kind: Path) -> None:
    """A record is sample × lead; the plug-in is given time last, at the sample rate of the record."""
    from hitmiss.attacks.batched import batched_families, make_records

    load_plugin_file(every_kind)
    x = np.random.default_rng(0).normal(size=(2, 200, 3))
    records = make_records(x, [1.0, 0.0], [np.random.default_rng(i) for i in (0, 1)], fs=100.0)
    changed = batched_families()["hum"].apply(records, hertz=5.0)
    wave = 0.1 * np.sin(2 * np.pi * 5.0 * np.arange(200) / 100.0)
    assert np.allclose(changed[0] - x[0], wave[:, None], atol=1e-12)
    assert np.array_equal(changed[1], x[1])


def test_a_family_of_another_medium_is_refused_by_name() -> None:
    from hitmiss.attacks.config import PerturbationConfig

    with pytest.raises(UsageError) as refused:
        PerturbationConfig("typos", 0.5, 0.0)
    assert refused.value.code == "wrong-medium"


def test_a_setting_that_is_true_or_false_is_never_a_word() -> None:
    """A word counts as true in Python: `normalize=false` must not mean that a cost is normalised."""
    trials = hm.Trials.of([1, 1, 0, 0], [3.0, 1.0, 2.0, 0.0])
    costs = [
        next(iter(hm.measure(trials, [f"dcf_at(threshold=1.5, normalize={word})"]))).value
        for word in ("false", "False")
    ]
    assert costs[0] == costs[1]
    with pytest.raises(hm.UsageError, match="true or false"):
        hm.measure(trials, ["dcf_at(threshold=1.5, normalize=no)"])
