"""What a careful user writes with pandas and scikit-learn: EER, minDCF and AUC of all trials and per codec, from one table.

python pandas_domains.py TABLE
"""

import sys

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score, roc_curve


def figures(positive, score):
    fpr, tpr, _ = roc_curve(positive, score, drop_intermediate=False)
    fnr = 1 - tpr
    i = np.argmin(np.abs(fnr - fpr))
    return (fnr[i] + fpr[i]) / 2, np.min(0.95 * fnr + 0.5 * fpr) / 0.5, roc_auc_score(positive, score)


def main(path):
    columns = ["codec", "label", "score"]
    read = pd.read_parquet if path.endswith(".parquet") else pd.read_csv
    table = read(path, columns=columns) if path.endswith(".parquet") else read(path, usecols=columns)
    table["positive"] = table["label"] == "bonafide"
    for name, frame in [("all", table), *table.groupby("codec")]:
        print(name, len(frame), *figures(frame["positive"].to_numpy(), frame["score"].to_numpy()))


if __name__ == "__main__":
    main(sys.argv[1])
