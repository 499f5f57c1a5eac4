"""The golden commands as claims: each written to a file, and the command that verifies it from the same files."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from commands import COMMANDS, Golden
from data import write_all

from hitmiss.cli.main import run

VERBS = ("score", "toxicity", "triage", "compare", "drift")
FILES = ("--key", "--calibrate-on", "--calibrate-key")
"""Options that a claim and its verification share: they name files."""
SPACED = ("--thresholds", "--costs", "--languages")
FLAGS = ("--json", "--seeds", "--stream", "--dedupe", "--allow-missing", "--sweep", "--reliability")

OWN = (
    Golden(
        "score-warned", "score eval_a.tsv --key eval.key -p asvspoof5 --by codec_q --bootstrap 40 --unit speaker --json"
    ),
    Golden("score-own-protocol", "score eval_a.tsv --key eval.key -p own.toml --by codec --json"),
    Golden("score-encoding", "score latin.csv --positive f\u00e4lschung --encoding latin-1 -m eer --json"),
    Golden("score-positive-value", "score ones.csv --positive-value 1 -m eer -m roc_auc --json"),
    Golden("score-separator", "score tilde.csv --separator ~ -m eer --positive fake --json"),
    Golden("score-on-nan", "score gaps.csv -m eer --positive fake --on-nan drop --json"),
    Golden("score-dedupe", "score twice.csv -m eer --positive fake --dedupe --json"),
    Golden("score-allow-missing", "score fewer.tsv --key eval.key -p asvspoof5 --allow-missing --json"),
    Golden("score-where", "score eval_a.tsv --key eval.key -p asvspoof5 --where codec=C02 --where codec=C01 --json"),
    Golden(
        "score-key-column",
        "score named.csv --key truth.csv --column item=utt --column score=s --key-column item=trial --key-column label=is --positive fake -m eer --json",
    ),
    Golden("score-stem", "score folders.csv --key truths.csv --match stem --positive fake -m eer --json"),
    Golden("score-pipe", "score pipe.csv -m eer --positive fa|ke --negative re|al --json"),
)
"""What the golden commands leave out: reading options, and a protocol of one's own."""
CLAIMS = {c.name: c for c in (*COMMANDS, *OWN) if c.words.split()[0] in VERBS}


def write_files(folder: Path) -> None:
    """The files of the golden commands, and those of `OWN`."""
    write_all(folder)
    rows = [
        (f"i{i}", "fake" if i % 3 else "real", round((i * 7919 % 101) / 101 + 0.4 * bool(i % 3), 4)) for i in range(60)
    ]
    text = "id,label,score\n" + "".join(f"{i},{label},{score}\n" for i, label, score in rows)
    (folder / "ones.csv").write_text(text.replace("fake", "1").replace("real", "0"), encoding="utf-8")
    (folder / "words.csv").write_text(text.replace("fake", "yes").replace("real", "no"), encoding="utf-8")
    (folder / "latin.csv").write_text(text.replace("fake", "f\u00e4lschung"), encoding="latin-1")
    (folder / "tilde.csv").write_text(text.replace(",", "~"), encoding="utf-8")
    (folder / "pipe.csv").write_text(text.replace("fake", "fa|ke").replace("real", "re|al"), encoding="utf-8")
    (folder / "gaps.csv").write_text(text + "z1,fake,nan\n", encoding="utf-8")
    (folder / "twice.csv").write_text(text + text.splitlines()[1] + "\n", encoding="utf-8")
    (folder / "named.csv").write_text("utt,s\n" + "".join(f"{i},{x}\n" for i, _, x in rows), encoding="utf-8")
    (folder / "truth.csv").write_text("trial,is,utt\n" + "".join(f"{i},{y},-\n" for i, y, _ in rows), encoding="utf-8")
    (folder / "folders.csv").write_text(
        "id,score\n" + "".join(f"a/{i}.wav,{x}\n" for i, _, x in rows), encoding="utf-8"
    )
    (folder / "truths.csv").write_text("id,label\n" + "".join(f"{i}.flac,{y}\n" for i, y, _ in rows), encoding="utf-8")
    scores = (folder / "eval_a.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "fewer.tsv").write_text("".join(scores[:-3]), encoding="utf-8")
    toml = (
        'name = "own"\ntitle = "Own"\nprimary = "eer"\nmetrics = ["eer", "min_dcf"]\n'
        '[read]\npositive = "bonafide"\nnegative = "spoof"\n[settings]\nmin_dcf = { p_target = 0.3 }\n'
        '[remarks]\ncodec = "mind the codec"\n'
    )
    (folder / "own.toml").write_text(toml, encoding="utf-8")


def said(words: list[str], folder: Path) -> tuple[int, str]:
    """The exit code of a command in a folder, and all that it prints."""
    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = run(words)
    return code, out.getvalue()


def claim(name: str, folder: Path) -> Path:
    """Make a claim and write it to a file."""
    command, by_name = CLAIMS[name], {c.name: c for c in COMMANDS}
    for earlier in command.after:
        if not (folder / by_name[earlier].words.split(" -o ")[1].split()[0]).exists():
            assert said(by_name[earlier].words.split(), folder)[0] == 0
    words = [w for w in re.sub(r" -o \S+", "", command.words).split() if w != "--json"]
    code, text = said([*words, "--results" if words[0] == "toxicity" else "-o", f"{name}.json"], folder)
    assert code == 0, text
    return folder / f"{name}.json"


def verify_words(name: str) -> list[str]:
    """The command that verifies the claim, without the claim: its files and keys, and nothing of what was asked."""
    words = CLAIMS[name].words.split()
    files, options, at = [], [], 1
    while at < len(words):
        word = words[at]
        if word in SPACED:
            at += 1
            while at < len(words) and not words[at].startswith("-"):
                at += 1
            continue
        if word in FLAGS:
            at += 1
        elif word.startswith("-"):
            options += [word, words[at + 1]] if word in FILES else []
            at += 2
        else:
            files.append(word)
            at += 1
    if "--pred_dir" in words:
        files = [f"{words[words.index('--pred_dir') + 1]}:{words[words.index('--run_tag') + 1]}"]
    return [*files, *options]
