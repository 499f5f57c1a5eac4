"""Wrong inputs, over all verbs: what hitmiss says about them, and with which exit code, is frozen.

Each is one command, run in the folder of `data.write_all` and `write_wrong`; none may change a file that another reads.
"""

from __future__ import annotations

from pathlib import Path

FILES = {
    "plain.csv": "item,label,score\na,bonafide,2.0\nb,spoof,-1.0\nc,bonafide,1.0\nd,spoof,0.5\n",
    "nan.csv": "item,label,score\na,bonafide,2.0\nb,spoof,nan\nc,bonafide,1.0\nd,spoof,0.5\n",
    "word.csv": "item,label,score\na,bonafide,2.0\nb,spoof,high\nc,bonafide,1.0\nd,spoof,0.5\n",
    "twice.csv": "item,label,score\na,bonafide,2.0\nb,spoof,-1.0\na,bonafide,1.0\nd,spoof,0.5\n",
    "misspelt.csv": "item,label,score\na,bonafide,2.0\nb,spof,-1.0\nc,bonafide,1.0\nd,spoof,0.5\n",
    "unclear.csv": "item,label,score\na,real,2.0\nb,fake,-1.0\nc,real,1.0\nd,fake,0.5\n",
    "cats.csv": "item,label,score\na,cat,2.0\nb,dog,-1.0\nc,cat,1.0\nd,dog,0.5\n",
    "one_class.csv": "item,label,score\na,bonafide,2.0\nb,bonafide,-1.0\n",
    "no_label.csv": "item,score\na,2.0\nb,-1.0\n",
    "no_score.csv": "item,label\na,bonafide\nb,spoof\n",
    "ragged.csv": "item,label,score\na,bonafide,2.0\nb,spoof\nc,bonafide,1.0,7\n",
    "header.csv": "item,label,score\n",
    "nothing.csv": "",
    "missing_cell.csv": "item,label,score\na,bonafide,2.0\nb,spoof,\nc,bonafide,1.0\nd,spoof,0.5\n",
    "too_likely.csv": "item,label,score\na,bonafide,1.7\nb,spoof,0.2\nc,bonafide,0.9\nd,spoof,0.5\n",
    "broken.jsonl": '{"id": "a", "label": "real", "verdict": "real"}\n{"id": "b", "label": \n',
    "verdicts.jsonl": '{"id": "a", "label": "real", "verdict": "perhaps", "confidence": 0.5}\n{"id": "b", "label": "fake", "verdict": "fake", "confidence": 0.9}\n',
    "sure.jsonl": '{"id": "a", "label": "real", "verdict": "real", "confidence": 1.5}\n{"id": "b", "label": "fake", "verdict": "fake", "confidence": 0.9}\n',
    "few.key": "a bonafide\nb spoof\nx spoof\n",
    "few.tsv": "filename\tcm-score\na\t1.0\nb\t-1.0\ny\t0.3\n",
    "reversed.csv": "item,label,score\n" + "".join(f"u{i},{('bonafide', 'spoof')[i % 2]},{i % 2 + i / 100}\n" for i in range(60)),
    "constant.csv": "item,label,score\n" + "".join(f"u{i},{('bonafide', 'spoof')[i % 2]},0.5\n" for i in range(20)),
    "bad.toml": "name = \"mine\"\nmetrics = [\"eer\"\n",
    "odd.toml": "name = \"mine\"\ntitle = \"Mine\"\nmetrics = [\"eer\"]\ncolour = \"red\"\n",
    "settings.toml": "[reading]\nhigher = 3\n",
    "bad.json": "{\"estimates\": ",
    "forged.json": "{\"schema\": \"hitmiss.results/1\", \"estimates\": []}\n",
    "wrong_plugin.py": "import hitmiss as hm\nraise ValueError('broken')\n",
    "fails.py": "def fails(texts):\n    raise RuntimeError('out of cheese')\n\n\ndef short(texts):\n    return [0.5]\n",
    "lacking/base_en.csv": "id,text,y_true,y_prob\na,x,1,0.9\nb,y,-1,0.2\nc,z,0,1.7\n",
}  # fmt: skip

WRONG = (
    # what is typed
    "", "scor plain.csv", "score", "score plain.csv --metrics eer", "score plain.csv -m",
    "score plain.csv -m eeer", "score plain.csv -m eer(tie=official)", "score plain.csv -m eer(ties=odd)",
    "score plain.csv -m eer --bootstrap many", "score plain.csv -m eer --bootstrap -5", "score plain.csv -m eer --level 95",
    "score plain.csv -m eer --interval exact", "score plain.csv -m eer --by codec", "score plain.csv -m eer --unit speaker --bootstrap 50",
    "score plain.csv -p asvspof5", "score plain.csv -p bad.toml", "score plain.csv -p odd.toml",
    "score plain.csv -m eer --settings settings.toml", "score plain.csv -m eer --seed 1 --seed 2",
    "score plain.csv -m f1", "score plain.csv -m cllr", "score plain.csv -m eer --gap codec",
    "score plain.csv -m eer --higher left", "score plain.csv -m eer --score-kind odds", "--plugin wrong_plugin.py list metrics",
    # what is read
    "score nowhere.csv -m eer", "score nan.csv -m eer", "score word.csv -m eer", "score twice.csv -m eer",
    "score misspelt.csv -m eer", "score unclear.csv -m eer", "score cats.csv -m eer", "score one_class.csv -m eer",
    "score no_label.csv -m eer", "score no_score.csv -m eer", "score ragged.csv -m eer", "score header.csv -m eer",
    "score nothing.csv -m eer", "score missing_cell.csv -m eer", "score too_likely.csv --score-kind probability -m brier",
    "score few.tsv --key few.key -m eer", "score plain.csv --key nowhere.key -m eer", "score plain.csv -m eer --column score=points",
    "score reversed.csv -m eer --bootstrap 200", "score constant.csv -m eer --bootstrap 200", "score reversed.csv -m eer --strict",
    "score broken.jsonl -m eer", "validate twice.csv", "validate few.tsv --key few.key", "validate ragged.csv",
    # other verbs
    "init nowhere.csv", "init cats.csv", "toxicity --pred_dir lacking --run_tag base --languages en",
    "toxicity --pred_dir predictions --run_tag base --languages en de", "toxicity --pred_dir nowhere --run_tag base",
    "threshold plain.csv --maximize joy", "threshold nowhere.csv", "triage verdicts.jsonl", "triage sure.jsonl", "triage broken.jsonl",
    "triage triage_scores.csv --thresholds 0.8 0.2", "triage triage_scores.csv --choose wish", "llm --dataset nowhere.jsonl --models x.py:f",
    "compare eval_a.tsv --key eval.key -m eer", "compare eval_a.tsv few.tsv --key eval.key -p asvspoof5",
    "compare eval_a.tsv eval_b.tsv --key eval.key -p asvspoof5 --test guess", "gate bad.json --fail-if eer>0.1",
    "gate forged.json --fail-if eer>0.1", "gate plain.csv --fail-if err>0.1", "gate plain.csv --fail-if eer", "gate plain.csv --fail-if eer<0.1",
    "gate plain.csv -p asvspoof5", "plan -m eer", "plan -m eer --value 2 --width 0.1", "report nowhere.json -o x.html", "report bad.json -o x.html",
    "export bad.json --to csv", "export nowhere.json --to word", "verify forged.json plain.csv", "verify nowhere.json plain.csv",
    "sql trials", "review nowhere.jsonl --status",
    "detect --detector nowhere.py:f --data texts.csv --input text --positive toxic --negative non-toxic --outputs logit -o x.run",
    "detect --detector detector.py:nothing --data texts.csv --input text --positive toxic --negative non-toxic --outputs logit -o x.run",
    "detect --detector detector.py:words --data texts.csv --input text --positive toxic --negative non-toxic -o x.run",
    "detect --detector fails.py:fails --data texts.csv --input text --positive toxic --negative non-toxic --outputs logit -o fails.run",
    "detect --detector fails.py:short --data texts.csv --input text --positive toxic --negative non-toxic --outputs logit -o short.run",
    "attack --detector detector.py:leads --data ecg.npz --family band_nois --strengths 0.5 --outputs probability -o x",
    "attack --detector detector.py:leads --data ecg.npz --family band_noise --strengths 5 --outputs probability -o x",
    "attack --detector detector.py:leads --data ecg.npz --family pgd --strengths 0.5 --outputs probability -o x",
    "drift plain.csv", "drift nowhere.run", "shortcuts nowhere.csv --positive real", "probe embeddings.npz --labels nothing",
    "probe nowhere.npz --labels codec", "list things", "show eeer", "show", "demo --only nothing",
)  # fmt: skip


def write_wrong(folder: Path) -> None:
    """Write the faulty files."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
