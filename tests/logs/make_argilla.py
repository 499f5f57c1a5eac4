"""Make files/argilla.json with Argilla itself: `pip install argilla requests`, then `python make_argilla.py FOLDER`."""

from __future__ import annotations

import sys

PEOPLE = [f"00000000-0000-0000-0000-00000000000{n}" for n in (1, 2)]


def main(folder: str) -> None:
    """Twelve comments, four of them toxic; one model and two people judge them."""
    import argilla as rg
    from argilla.records._io import JsonIO

    records = []
    for i in range(12):
        truth = "toxic" if i % 3 == 0 else "clean"
        said = "toxic" if i in (0, 3, 6, 1) else "clean"
        answers = [truth if i != 5 else "toxic", "clean"]
        records.append(
            rg.Record(
                id=f"r{i}",
                fields={"text": f"comment {i}"},
                metadata={"label": truth},
                suggestions=[rg.Suggestion("label", said, score=0.9, agent="model-1")],
                responses=[rg.Response("label", a, user_id=u) for a, u in zip(answers, PEOPLE, strict=True)],
            )
        )
    JsonIO.to_json(records, f"{folder}/argilla.json")


if __name__ == "__main__":
    main(sys.argv[1])
