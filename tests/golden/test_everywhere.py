"""The same digits on every processor: vector width, kernels of BLAS and threads change no file, figure or digest."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SCRIPT = Path(__file__).resolve().with_name("everywhere.py")


def above(*kept: str) -> str:
    """What this processor has above numpy's baseline, those `kept` apart, as NPY_DISABLE_CPU_FEATURES takes it."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return " ".join(name for name in __cpu_dispatch__ if __cpu_features__.get(name) and name not in kept)


@cache
def found(switched_off: str, core: str, threads: str) -> dict[str, Any]:
    """What `everywhere.py` gives in a process of its own."""
    own = {"NPY_DISABLE_CPU_FEATURES": switched_off, "OPENBLAS_CORETYPE": core}
    own["GLIBC_TUNABLES"] = "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4" if core == "Nehalem" else ""
    own |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS"), threads)
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], env={**os.environ, **own}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.extras
@pytest.mark.parametrize(
    ("kept", "core", "threads"),
    [((), "Nehalem", "1"), (("X86_V3", "AVX2", "FMA3"), "Haswell", "2")],
    ids=["baseline", "without-avx512"],
)
def test_every_file_and_every_line_is_the_same(kept: tuple[str, ...], core: str, threads: str) -> None:
    if not above(*kept):
        pytest.skip(
            f"this processor has nothing above {'numpy`s baseline' if not kept else ', '.join(kept)} to switch off"
        )
    here, there = found("", "", "1"), found(above(*kept), core, threads)
    assert here.keys() == there.keys() and len(here) > 25
    assert [name for name in here if here[name] != there[name]] == []


def test_the_switch_changes_the_mathematics_library() -> None:
    """Without it the baseline above would call another `exp` than a processor without FMA does."""
    if not Path("/proc/cpuinfo").exists() or " fma " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no FMA, or no Linux runs on it")
    text = "import math; print([math.exp(k / 700) + math.pow(k + 1, 0.37) for k in range(20000)])"
    outs = [
        subprocess.run(
            [sys.executable, "-c", text], env={**os.environ, "GLIBC_TUNABLES": own}, capture_output=True, check=True
        ).stdout
        for own in ("", "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4")
    ]
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("the C library is not glibc, which has variants by processor")
    assert outs[0] != outs[1]


def test_the_switch_changes_the_arithmetic() -> None:
    """Without it the test above could not fail: numpy's powers have other last bits on a wider processor."""
    if "X86_V4" not in above():
        pytest.skip("this processor has no AVX-512, whose powers differ")
    text = "import numpy as np; print(((np.arange(1, 2000) / 2000) ** 0.37).tobytes().hex())"
    outs = [
        subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, "NPY_DISABLE_CPU_FEATURES": off},
            capture_output=True,
            check=True,
        ).stdout
        for off in ("", above())
    ]
    assert outs[0] != outs[1] and np.__version__


@pytest.mark.extras
def test_an_emulated_processor_gives_the_same_digits() -> None:
    """A processor without AVX-512 down to `cpuid`: numpy, polars, OpenBLAS and the C library choose by what it says."""
    emulator = shutil.which("qemu-x86_64")
    if emulator is None or platform.machine() != "x86_64":
        pytest.skip("qemu-x86_64 (the Debian package qemu-user) is not here, or this is no x86 processor")
    words = [sys.executable, str(SCRIPT), "score-trials", "compare-auc"]
    outs = [
        subprocess.run([*before, *words], capture_output=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        for before in ([], [emulator, "-cpu", "Haswell-v4"])
    ]
    assert outs[0].stdout == outs[1].stdout and len(json.loads(outs[0].stdout)) == 2
