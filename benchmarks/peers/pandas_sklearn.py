"""What a careful user writes with pandas and scikit-learn: join, figures for all trials and per codec, bootstrap by loop.

python pandas_sklearn.py SCORES PROTOCOL REPLICATES
"""

import sys

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score, roc_curve

COLUMNS = ["speaker", "filename", "gender", "codec", "codec_q", "codec_seed", "attack_tag", "attack", "key", "tmp"]


def eer_and_min_dcf(positive, score):
    fpr, tpr, _ = roc_curve(positive, score, drop_intermediate=False)
    fnr = 1 - tpr
    i = np.argmin(np.abs(fnr - fpr))
    return (fnr[i] + fpr[i]) / 2, np.min(0.95 * fnr + 0.5 * fpr) / 0.5


def figures(frame):
    positive, score = (frame["key"] == "bonafide").to_numpy(), frame["cm-score"].to_numpy()
    threshold = -np.log(1.9)
    act_dcf = (0.95 * np.mean(score[positive] < threshold) + 0.5 * np.mean(score[~positive] >= threshold)) / 0.5
    cllr = (np.mean(np.logaddexp(0, -score[positive])) + np.mean(np.logaddexp(0, score[~positive]))) / (2 * np.log(2))
    return (*eer_and_min_dcf(positive, score), act_dcf, cllr, roc_auc_score(positive, score))


def intervals(frame, replicates, rng):
    positive, score = (frame["key"] == "bonafide").to_numpy(), frame["cm-score"].to_numpy()
    places = np.flatnonzero(positive), np.flatnonzero(~positive)
    drawn = [np.concatenate([rng.choice(p, size=len(p)) for p in places]) for _ in range(replicates)]
    return np.quantile([eer_and_min_dcf(positive[i], score[i]) for i in drawn], [0.025, 0.975], axis=0)


def main(scores, protocol, replicates):
    key = pd.read_csv(protocol, sep=" ", header=None, names=COLUMNS)
    table = pd.read_csv(scores, sep="\t").merge(key, on="filename", validate="one_to_one")
    rng = np.random.default_rng(0)
    for name, frame in [("all", table), *table.groupby("codec")]:
        print(name, len(frame), figures(frame), intervals(frame, replicates, rng).tolist() if replicates else "")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
