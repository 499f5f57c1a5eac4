"""The table of faults, row by row: which tests show that each is met. A row without a test, or with a test that is gone, fails.

D: data, C: crashes and circumstances, S: safety, I: integrity. What must happen is said beside each row.
"""

from __future__ import annotations

import ast
import resource
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.source import trees

TESTS = Path(__file__).parents[1]
OWN = "faults/test_fault_table.py"

TABLE: dict[str, tuple[str, tuple[str, ...]]] = {
    "D1": (
        "NaN, inf and empty scores: refused with count and first ids; --on-nan is explicit; inf for rank metrics only",
        (
            "io/test_door.py::test_nan_and_empty_scores_are_refused_dropped_or_made_the_worst",
            "faults/test_official_twelve.py::test_nan",
            "faults/test_degenerate_slices.py::test_endless_and_huge_ratios_have_intervals_or_a_reason",
        ),
    ),
    "D2": (
        "duplicate ids: an error; identical rows merge with --dedupe, conflicting ones never",
        (
            "faults/test_official_twelve.py::test_duplicates",
            "faults/test_official_twelve.py::test_conflicting_duplicates",
        ),
    ),
    "D3": (
        "ids missing on one side: both lists; --allow-missing writes the coverage down",
        ("io/test_door.py::test_missing_ids_are_listed_on_both_sides_and_coverage_is_written_down",),
    ),
    "D4": (
        "label typo, unknown class: an error with the nearest word and a count",
        (
            "faults/test_official_twelve.py::test_label_typo",
            "io/test_words.py::test_the_sentence_counts_and_names_the_nearest_word",
        ),
    ),
    "D5": (
        "reversed scores: a loud warning, a failure under --strict, never flipped",
        (
            "cli/test_score.py::test_reversed_scores_warn_and_fail_under_strict",
            "measuring/test_measurement.py::test_reversed_scores_are_named_and_not_flipped",
        ),
    ),
    "D6": (
        "one class, no or one trial in a slice: undefined with its reason, the row stays",
        (
            "properties/test_exact.py::test_one_class_is_undefined",
            "measuring/test_measurement.py::test_without_that_rule_a_slice_of_one_class_is_undefined_and_says_so",
            "faults/test_degenerate_slices.py::test_one_class_slices_are_measured_with_every_interval",
            "faults/test_degenerate_slices.py::test_attacks_of_trials_without_an_attack",
        ),
    ),
    "D7": (
        "ties, constant scores: EER 0.5, whatever the order of rows",
        (
            "properties/test_laws.py::test_the_order_of_rows_does_not_matter",
            "faults/test_official_twelve.py::test_constant_score_is_noted",
        ),
    ),
    "D8": (
        "domain values -, 0, NA, empty: text, and their slices add up to the whole",
        (f"{OWN}::test_domain_values_stay_apart",),
    ),
    "D9": (
        "encodings, line ends, quotes, NUL, ragged rows: right, or refused with the line",
        (
            "io/test_encodings.py::test_same_trials_whatever_the_bytes",
            "faults/test_injected.py::test_one_changed_byte_never_gives_other_trials_in_silence",
        ),
    ),
    "D10": (
        "ids are text; hints where a join nearly works",
        (
            "io/test_door.py::test_ids_are_text_and_stay_so",
            "io/test_door.py::test_ids_that_nearly_match_come_with_what_they_differ_in",
        ),
    ),
    "D11": ("huge files: memory bounded with --stream", (f"{OWN}::test_a_stream_fits_into_little_memory",)),
    "D12": (
        "a threshold tuned on the test data is called optimistic",
        ("toxicity/test_thresholds.py::test_tuning_on_the_test_set_is_called_optimistic",),
    ),
    "D13": (
        "runs of other directions are not compared",
        ("faults/test_compare_faults.py::test_the_direction_can_be_declared_for_one_run",),
    ),
    "D14": (
        "metrics of probabilities given other scores: refused, with what to do",
        ("cli/test_score.py::test_scores_of_unknown_kind_leave_out_what_needs_llrs_and_say_so",),
    ),
    "C1": (
        "kill -9: nothing acknowledged is lost or doubled, and a resumed run ends with the same scores",
        (
            "detection/test_loop.py::test_killed_anywhere_the_run_ends_with_the_same_scores",
            "review/test_killed.py::test_killed_again_and_again",
        ),
    ),
    "C2": (
        "torn tails are cut, at whatever byte",
        ("runs/test_store.py::test_a_tail_torn_at_any_byte_is_cut_and_the_rest_kept",),
    ),
    "C3": (
        "a full disk: exit 5 with a sentence, what was there before is untouched, by every verb that writes",
        (
            "core/test_artifacts.py::test_a_full_disk_leaves_the_old_file",
            "faults/test_io_calls.py::test_a_fault_leaves_nothing_torn",
            "llm/test_hostile.py::test_a_full_disk",
        ),
    ),
    "C4": (
        "two processes on one run: the second names the first, or joins",
        (
            "detection/test_loop.py::test_two_processes_share_one_run",
            "cli/test_detect.py::test_a_folder_in_use_and_a_changed_configuration",
        ),
    ),
    "C5": (
        "Ctrl-C and SIGTERM: written, noted, exit 130",
        (
            "cli/test_endings.py::test_an_interrupt_is_130",
            "detection/test_loop.py::test_terminated_the_run_is_interrupted_and_goes_on",
        ),
    ),
    "C6": (
        "a resumed run with another model, weights, code or data is refused with the difference",
        (
            "detection/test_loop.py::test_a_resumed_run_must_be_the_same_run",
            "detection/test_pinning.py::test_a_resumed_run_refuses_changed_code_beside_the_detector",
            "detection/test_pinning.py::test_weights_beside_an_onnx_graph_are_pinned",
            "detection/test_pinning.py::test_a_run_does_not_go_on_over_other_files",
        ),
    ),
    "C7": (
        "errors of a network are errors, never verdicts",
        (
            "io/test_triage.py::test_errors_abstentions_and_unparsed_verdicts_are_three_things",
            "llm/test_hostile.py::test_what_is_not_understood_is_no_verdict",
            "llm/test_hostile.py::test_what_lasts_is_an_error_row",
        ),
    ),
    "C8": (
        "locale, time zone, hash seed, threads: the same digits",
        (
            f"{OWN}::test_surroundings_change_no_byte",
            "stats/test_bootstrap.py::test_number_of_threads_does_not_change_a_bit",
        ),
    ),
    "C9": (
        "files of other versions are refused by their number",
        (
            "core/test_results.py::test_another_schema_is_refused",
            "verifying/test_verify.py::test_shorter_digests_of_older_versions_are_read_and_no_shorter_ones",
        ),
    ),
    "C10": (
        "a fault or a signal at any open, write, rename or fsync of a verb that writes: a sentence, nothing torn, run again",
        (
            "faults/test_io_calls.py::test_every_verb_is_tried_or_says_why_not",
            "faults/test_io_calls.py::test_a_fault_leaves_nothing_torn",
        ),
    ),
    "C11": (
        "streams that are closed or of another encoding, pipes and devices as files, SIGTERM: the documented exit code",
        (
            "faults/test_streams.py::test_exit_codes_hold_whatever_the_streams_are",
            "faults/test_streams.py::test_json_is_the_same_bytes_in_every_encoding",
            "faults/test_streams.py::test_a_file_may_be_a_pipe_of_the_shell",
            "faults/test_streams.py::test_a_device_without_an_end_is_refused",
            "faults/test_streams.py::test_an_end_from_outside_leaves_nothing",
        ),
    ),
    "S1": (
        "scripts in texts are shown as text",
        (
            "browser/test_report_in_chromium.py::test_hostile_names_do_nothing_and_nothing_leaves",
            "review/test_security.py::test_hostile_texts_are_text",
        ),
    ),
    "S2": (
        "formulas in sheets are defused",
        (
            "reports/test_exports.py::test_csv_defuses_formulas_and_raw_is_exact",
            "reports/test_exports.py::test_workbooks_hold_numbers_and_texts_but_no_formula",
        ),
    ),
    "S3": (
        "paths that lead out of a folder are refused, those that a received run names too",
        (
            "reports/test_media.py::test_paths_that_lead_out_of_the_folder_are_refused",
            "cli/test_report_media.py::test_a_run_shows_nothing_that_lies_outside_it",
            "review/test_choosing.py::test_no_path_leads_out",
        ),
    ),
    "S4": (
        "nothing is unpickled",
        (
            "review/test_choosing.py::test_arrays_are_never_unpickled",
            "outofcore/test_typed_sources.py::test_files_of_other_kinds_are_called_what_they_are",
        ),
    ),
    "S5": ("YAML: no aliases, no tags, bounded", ("toxicity/test_config.py::test_a_bomb_of_aliases_does_not_go_off",)),
    "S6": (
        "archives, tables, arrays, pictures and sounds that unfold without an end are not unfolded",
        (
            "outofcore/test_typed_sources.py::test_files_that_unfold_beyond_reason",
            "core/test_artifacts.py::test_archives_that_unfold_beyond_reason_are_not_unfolded",
            "io/test_media.py::test_a_bomb_is_not_unfolded",
            "review/test_choosing.py::test_bombs_are_refused",
        ),
    ),
    "S7": ("keys of services are in no output", ("llm/test_hostile.py::test_the_key_is_nowhere",)),
    "S8": (
        "orders inside items are data, and measured",
        ("llm/test_inspect.py::test_orders_inside_items_are_measured",),
    ),
    "S9": (
        "addresses of services: declared hosts only",
        (
            "llm/test_parts.py::test_addresses",
            "llm/test_hostile.py::test_no_server_sends_items_on_to_another",
        ),
    ),
    "S10": (
        "the review server: foreign hosts, forms without a token, frames",
        (
            "review/test_security.py::test_a_foreign_host_is_refused",
            "review/test_security.py::test_a_form_without_its_token_changes_nothing",
        ),
    ),
    "S11": (
        "private data leaves only as asked",
        (
            "cli/test_report_verb.py::test_static_and_private_reports",
            "reports/test_media.py::test_no_samples_and_redacted_texts_show_no_media",
        ),
    ),
    "S12": (
        "texts cannot steer a terminal",
        (
            "reports/test_tables.py::test_values_from_files_cannot_steer_the_terminal",
            "faults/test_compare_faults.py::test_ids_cannot_play_with_the_terminal",
        ),
    ),
    "S13": ("no shell is started", (f"{OWN}::test_no_shell_is_started",)),
    "S14": (
        "the lock holds hashes; what is vendored is what was published",
        ("test_packaging.py::test_the_lock_holds_hashes_and_no_address",),
    ),
    "I1": (
        "every edit of results, comparisons and runs is noticed, by every verb that reads them",
        (
            "core/test_artifacts.py::test_every_edit_of_results_is_noticed",
            "core/test_artifacts.py::test_every_edit_of_a_comparison_is_noticed",
            "core/test_artifacts.py::test_every_edit_of_a_run_is_noticed",
            "core/test_artifacts.py::test_every_verb_notices_edits_of_other_runs",
            "runs/test_store.py::test_every_changed_byte_of_a_finished_run_is_seen",
            "core/test_signatures.py::test_what_a_command_writes_is_signed_and_verified",
        ),
    ),
}


@cache
def names_in(file: str) -> frozenset[str]:
    """The tests of a file."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("row", TABLE)
def test_every_row_has_tests_that_are_there(row: str) -> None:
    assert TABLE[row][1]
    for test in TABLE[row][1]:
        file, _, name = test.partition("::")
        assert name in names_in(file), test


def test_domain_values_stay_apart(tmp_path: Path) -> None:
    from hitmiss.evaluation.evaluate import evaluate

    values = ["-", "0", "NA", "None", "null", "", " ", "nan"]
    rows = [f"i{k},{'bonafide' if k % 2 else 'spoof'},{k % 7},{values[k % 8]}" for k in range(160)]
    (tmp_path / "t.csv").write_text("item,label,score,codec\n" + "\n".join(rows) + "\n")
    found = evaluate(str(tmp_path / "t.csv"), metrics=["roc_auc"], by=["codec"])
    counts = {e.slice["codec"]: e.n for e in found if e.slice and e.average is None}
    assert sum(counts.values()) == 160 and len(counts) >= 7


def test_a_stream_fits_into_little_memory(tmp_path: Path) -> None:
    """A file whose trials take more than the process may have: counted with --stream, under a limit of the system."""
    n = 1_500_000
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"item": pl.int_range(n, eager=True).cast(pl.String), "score": rng.normal(size=n)})
    label = pl.Series("label", np.where(rng.random(n) < 0.5, "bonafide", "spoof"))
    frame.with_columns(label).write_csv(tmp_path / "t.csv")
    words = ["-m", "hitmiss", "score", str(tmp_path / "t.csv"), "-m", "eer", "--stream", "--memory", "20MB"]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (700 * 2**20, 700 * 2**20))

    done = subprocess.run(
        [sys.executable, *words], preexec_fn=limit, capture_output=True, text=True, check=False, env=_environment()
    )
    assert done.returncode == 0, done.stderr[-500:]


def _environment(**more: str) -> dict[str, str]:
    import os

    return {**os.environ, "POLARS_MAX_THREADS": "2", "OPENBLAS_NUM_THREADS": "1", **more}


def test_surroundings_change_no_byte(tmp_path: Path) -> None:
    rows = [f"i{k},{'bonafide' if k % 3 else 'spoof'},{k * 7919 % 101 / 7:.4f},C0{k % 3}" for k in range(200)]
    (tmp_path / "t.csv").write_text("item,label,score,codec\n" + "\n".join(rows) + "\n")
    asked = ["-m", "eer", "-m", "roc_auc", "--by", "codec", "--bootstrap", "30", "--json"]
    words = [sys.executable, "-m", "hitmiss", "score", str(tmp_path / "t.csv"), *asked]
    surroundings = (
        {},
        {"LC_ALL": "C", "TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "1"},
        {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "PYTHONHASHSEED": "77", "POLARS_MAX_THREADS": "1"},
    )
    outputs = {
        subprocess.run(words, capture_output=True, check=True, env=_environment(**more)).stdout for more in surroundings
    }
    assert len(outputs) == 1


def test_no_shell_is_started() -> None:
    for path, tree in trees(r"\b(system|popen|getoutput|shell)\b"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Attribute) and node.func.attr in ("system", "popen", "getoutput"):
                    assert ast.unparse(node.func) not in ("os.system", "os.popen", "subprocess.getoutput"), path
                for keyword in node.keywords:
                    is_shell = keyword.arg == "shell" and not (
                        isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                    )
                    assert not is_shell, path
