"""A network on real ECGs (the PTB-XL sample), and what 20 µV do to it: PGD against noise of the same norm.

python benchmarks/ecg_ptbxl.py [--device cuda] [--epochs 10]
"""

from __future__ import annotations

import argparse

from ecg_parts import macro_auc, printed, recordings, train
from hitmiss.attacks.campaign import run_campaign
from hitmiss.attacks.config import PerturbationConfig
from hitmiss.attacks.model import as_classifier
from hitmiss.attacks.plan import AttackPlan
from hitmiss.attacks.worker import PlannedAttacks
from hitmiss.robustness.attacks import measure_attacks


def rows(device: str = "cpu", epochs: int = 10) -> list[dict[str, object]]:
    """The table: the clean network, PGD and its control at two budgets."""
    import torch

    if device == "cpu":
        torch.set_num_threads(1)
    train_part, _, test, source = recordings()
    module = train(train_part, epochs=epochs, device=device)
    model = as_classifier(module, layout="lead_sample", outputs="logit", device=device)
    auc = macro_auc(test.y, model.log_odds(test.x))
    table: list[dict[str, object]] = [
        {
            "what": f"clean, {len(test.x)} test records ({source})",
            "changed among clean-correct": "",
            "95 % interval": "",
            "macro AUC": auc,
            "wanted": "AUC >= 0.88",
        }
    ]
    plan = AttackPlan(
        tuple(PerturbationConfig("pgd", s, 0.0, extra={"eps_max": 0.05, "steps": 10}) for s in (0.4, 1.0))
    )
    results = measure_attacks(run_campaign(PlannedAttacks(test, model, plan)), bootstrap=1000)
    for strength, microvolts in (("0.4", 20), ("1", 50)):
        for attack, wanted in (("pgd", ">= 0.70 at 20 µV"), ("noise ~ pgd", "< 0.05 at 20 µV")):
            e = results.one("changed_correct", attack=attack, strength=strength)
            under = results.one("macro_auc", attack=attack, strength=strength).value
            table.append(
                {
                    "what": f"{attack}, {microvolts} µV",
                    "changed among clean-correct": e.value,
                    "95 % interval": f"{e.low:.3f} to {e.high:.3f}",
                    "macro AUC": under,
                    "wanted": wanted,
                }
            )
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=10)
    chosen = parser.parse_args()
    printed(rows(chosen.device, chosen.epochs))


if __name__ == "__main__":
    main()
