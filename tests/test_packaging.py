"""What is shipped: the lock, the wheel, the version, and nothing of the machine it was made on."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import hitmiss

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
HEAVY = {
    "torch",
    "onnx",
    "transformers",
    "art",
    "llm",
    "mcp",
    "review",
    "cluster",
    "remote",
    "sql",
    "duckdb",
    "spark",
}
"""Extras that are in requirements-extras.txt instead of the lock."""


def normal(requirement: str) -> str:
    """A requirement's package name as lock files write it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[ <>=!~;\[]", requirement)[0]).lower()


def locked() -> set[str]:
    return {normal(line) for line in LOCK.read_text(encoding="utf-8").splitlines() if "==" in line}


def test_the_lock_holds_hashes_and_no_address() -> None:
    text = LOCK.read_text(encoding="utf-8")
    assert "://" not in text and "index-url" not in text and "find-links" not in text
    entries = re.split(r"\n(?=[a-z])", text.strip())
    assert len(entries) > 30
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []


def test_the_lock_holds_the_core_the_light_extras_and_the_build_but_not_torch() -> None:
    light = {k: v for k, v in PROJECT["project"]["optional-dependencies"].items() if k not in HEAVY}
    extras = [name for group in light.values() for name in group]
    groups = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"]]
    asked = [*groups, *extras, "hatchling", "editables"]
    assert {normal(name) for name in asked} - locked() == set()
    assert {name for name in locked() if "torch" in name or "nvidia" in name} == set()


def test_the_version_has_one_source() -> None:
    assert "version" not in PROJECT["project"] and "version" in PROJECT["project"]["dynamic"]
    source = ROOT / PROJECT["tool"]["hatch"]["version"]["path"]
    assert f'"{hitmiss.__version__}"' in source.read_text(encoding="utf-8")
    assert version("hitmiss") == hitmiss.__version__


def test_a_published_package_names_where_it_is_developed(tmp_path: Path) -> None:
    """The addresses are those of the repository that publishes, whichever it is: its workflow states them."""
    steps = YAML(typ="safe").load(ROOT / ".github/workflows/publish.yml")["jobs"]["build"]["steps"]
    (step,) = (one["run"] for one in steps if "Where this is developed" in one.get("name", ""))
    for name in ("pyproject.toml", "README.md", "LICENSE", PROJECT["tool"]["hatch"]["version"]["path"]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    own = {
        **os.environ,
        "GITHUB_SERVER_URL": "https://forge.example",
        "GITHUB_REPOSITORY": "a/b",
        "GITHUB_REF_NAME": "v1",
    }
    subprocess.run(["bash", "-euc", step], cwd=tmp_path, env=own, check=True)
    shown = [sys.executable, "-m", "hatchling", "metadata"]
    made = json.loads(subprocess.run(shown, cwd=tmp_path, check=True, capture_output=True, text=True).stdout)
    home = "https://forge.example/a/b"
    assert made["urls"] == {
        "Repository": home,
        "Documentation": f"{home}/blob/v1/docs/index.md",
        "Issues": f"{home}/issues",
        "Changelog": f"{home}/blob/v1/CHANGELOG.md",
    }
    assert made["name"] == "hitmiss" and made["version"] == hitmiss.__version__


def test_the_changelog_and_the_citation_name_this_version() -> None:
    newest = re.search(r"^## \[(\d[^]]*)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert newest is not None and newest[1] == hitmiss.__version__
    assert f"\nversion: {newest[1]}\n" in citation and f'date-released: "{newest[2]}"' in citation


def test_the_wheel_is_whole(tmp_path: Path) -> None:
    modules = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "hitmiss").rglob("*.py")}
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert modules <= names
    assert "hitmiss/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0] for name in names} == {"hitmiss", f"hitmiss-{hitmiss.__version__}.dist-info"}


def test_what_only_figures_need_is_an_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not any(normal(name) == "matplotlib" for name in PROJECT["project"]["dependencies"])
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # importing it now fails, as where it is not installed
    trials = hitmiss.Trials.of([1, 1, 0, 0], [3.0, 1.0, 2.0, 0.0])
    with pytest.raises(hitmiss.EnvironmentFault) as error:
        trials.plot.det()
    assert error.value.code == "missing-package"
    hitmiss.measure(trials, ["eer"]).save(tmp_path / "r.json")
    assert hitmiss.run(["report", str(tmp_path / "r.json"), "-o", str(tmp_path / "r.html")]) == 0


def tracked_texts() -> list[tuple[str, str]]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    return [(str(p.relative_to(ROOT)), p.read_bytes().decode("utf-8", "replace")) for p in paths if p.is_file()]


ROOT_FILES = re.compile(
    r"(README|CHANGELOG|CONTRIBUTING|CODE_OF_CONDUCT|SECURITY)\.md|LICENSE|Makefile|Dockerfile|CITATION\.cff|mkdocs\.yml|"
    r"action\.yml|pyproject\.toml|requirements[a-z-]*\.(txt|lock)|\.[a-z].*"
)
"""What a visitor expects in the root of the repository."""


def test_the_root_holds_what_a_visitor_expects() -> None:
    names = {name for name, _ in tracked_texts() if "/" not in name}
    assert [name for name in sorted(names) if not ROOT_FILES.fullmatch(name)] == []


@pytest.mark.parametrize("unwanted", [r"(?<![\w.])/(?:work|root|home)\b/", r":/{2}\S*(?:pypi|pythonhosted)"])
def test_no_tracked_file_tells_of_a_machine_or_a_registry(unwanted: str) -> None:
    texts = tracked_texts()
    assert texts
    assert [name for name, text in texts if re.search(unwanted, text)] == []


def test_the_patterns_find_what_they_look_for() -> None:
    assert re.search(r"(?<![\w.])/(?:work|root|home)\b/", "see " + "/".join(["", "home", "me"]))
    assert not re.search(r"(?<![\w.])/(?:work|root|home)\b/", "docs/work/x")


@pytest.mark.extras
def test_the_extras_kept_the_pinned_torch() -> None:
    pinned = re.search(r"^torch==(\S+)", (ROOT / "requirements-extras.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned is not None
    assert version("torch").split("+")[0] == pinned[1]


@pytest.mark.extras
def test_the_extras_kept_the_locked_numpy() -> None:
    assert f"\nnumpy=={version('numpy')} " in LOCK.read_text(encoding="utf-8")


@pytest.mark.extras
def test_sdist_and_wheel_pass_the_checks_of_the_index(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    assert {path.suffix for path in tmp_path.iterdir()} == {".gz", ".whl"}
    check = [sys.executable, "-m", "twine", "check", "--strict", *map(str, tmp_path.iterdir())]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.extras
@pytest.mark.parametrize(
    ("schema", "pattern"), [("vendor.github-workflows", "workflows/*.yml"), ("vendor.dependabot", "dependabot.yml")]
)
def test_the_workflows_fit_the_schema(schema: str, pattern: str) -> None:
    files = sorted((ROOT / ".github").glob(pattern))
    assert files
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, files)]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


RELEASE = [
    *(f".github/workflows/{name}.yml" for name in ("test", "extras", "docs", "nightly", "publish")),
    *(
        ".github/dependabot.yml",
        ".github/CODEOWNERS",
        ".github/PULL_REQUEST_TEMPLATE.md",
        *(f".github/ISSUE_TEMPLATE/{name}.yml" for name in ("bug", "feature", "wrong_number")),
    ),
    *("SECURITY.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "Dockerfile"),
    *(".pre-commit-config.yaml", ".editorconfig", "CHANGELOG.md"),
]


def test_the_release_kit_is_whole() -> None:
    if not (ROOT / ".github").is_dir():
        pytest.skip("not a checkout")
    assert [name for name in RELEASE if not (ROOT / name).is_file()] == []


def test_actions_and_the_image_are_pinned() -> None:
    """A tag can be moved; a commit, a digest and a hash cannot."""
    workflows = [
        *sorted((ROOT / ".github" / "workflows").glob("*.yml")),
        *(ROOT / "examples" / "ci").glob("github*.yml"),
    ]
    used = [found for path in workflows for found in re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8"))]
    assert used and [name for name in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)] == []
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^ARG PYTHON=\S+@sha256:[0-9a-f]{64}$", image, re.MULTILINE)
    assert [line for line in re.findall(r"^FROM (\S+)", image, re.MULTILINE) if line != "${PYTHON}"] == []
    assert [
        line for line in re.findall(r"pip install.*", image) if not re.search("--require-hashes|--no-deps", line)
    ] == []
    whole, image_only = (pins(ROOT / f"requirements{name}.lock") for name in ("", "-image"))
    assert image_only and image_only <= whole


def pins(lock: Path) -> set[str]:
    """The versions of a lock; each must have a hash."""
    entries = re.split(r"\n(?=\S)", lock.read_text(encoding="utf-8").strip())
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    return {entry.partition(" \\")[0].strip() for entry in entries}


def test_extras_come_by_their_hashes_but_torch() -> None:
    """Which build of torch fits depends on the machine, so it has a version and no hash."""
    wanted = {
        normal(found[0])
        for line in (ROOT / "requirements-extras.txt").read_text(encoding="utf-8").splitlines()
        if (found := re.match(r"[A-Za-z0-9._-]+", line))
    }
    held = {normal(re.split("[=;\\[ ]", pin)[0]) for pin in pins(ROOT / "requirements-extras.lock")}
    assert wanted - held == {"torch"} and not any(name.startswith("nvidia") for name in held)
    assert {"build", "twine", "hatchling", "cyclonedx-bom"} <= {
        normal(re.split("[=;\\[ ]", pin)[0]) for pin in pins(ROOT / "requirements-release.lock")
    }
