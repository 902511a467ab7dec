"""The published UKPConvArg1 corpus as a file of votes and a file of texts, for `rmjax.data.formats.read`.

    git clone --depth 1 https://github.com/UKPLab/acl2016-convincing-arguments
    python experiments/convert_ukp.py acl2016-convincing-arguments/data/UKPConvArg1-full-XML data

Hardware and cost: any machine, some seconds.
Expected: 32 topics, 16,927 pairs, 84,445 votes, 1,052 arguments, 3,815 annotators, 846 pairs without gold, written to
data/ukp_pairs.jsonl.gz and data/ukp_arguments.jsonl.gz; read them with

    read("data/ukp_pairs.jsonl.gz", texts="data/ukp_arguments.jsonl.gz",
         fields=Fields(prompt=("prompt", "stance"), source="prompt", keep=("topic",)))

A file of the corpus is a topic: a debate with a stance. A prompt is the debate's title, votes of "equal" are ties, and
annotators are numbered in order of appearance, so that the marketplace's names of workers do not travel on.

Source: Habernal and Gurevych, Which argument is more convincing?, ACL 2016. The corpus is CC BY 4.0.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from pathlib import Path

from rmjax.errors import DataError

VOTE = {"a1": "a", "a2": "b", "equal": "tie"}


@dataclasses.dataclass(frozen=True)
class Config:
    """Where the corpus lies and where its conversion goes."""

    corpus: Path
    output: Path
    pairs: str = "ukp_pairs.jsonl.gz"
    arguments: str = "ukp_arguments.jsonl.gz"


def convert(files: Iterable[Path]) -> tuple[list[dict], dict[str, str]]:
    """Rows of votes, and texts by id.

    Args:
        files: XML files of the corpus, one per topic.

    Returns:
        One row per pair, and the arguments that the rows name.

    Raises:
        DataError: a file that is not XML of this schema, a vote that is not known, or one id with two texts.
    """
    rows: list[dict] = []
    texts: dict[str, str] = {}
    workers: dict[str, str] = {}
    for file in sorted(files):
        try:
            pairs = ElementTree.parse(file).getroot().findall("annotatedArgumentPair")
        except ElementTree.ParseError as error:
            raise DataError("the file is not XML", {"file": file, "problem": error}, "Fetch it again.") from error
        if not pairs:
            raise DataError(
                "the file holds no annotated pairs", {"file": file}, "Give the folder UKPConvArg1-full-XML."
            )
        for number, pair in enumerate(pairs, start=1):
            where = {"file": file, "pair": number}
            for side in ("arg1", "arg2"):
                key, text = f"{file.stem}/{_text(pair, f'{side}/id', where)}", _text(pair, f"{side}/text", where)
                if texts.setdefault(key, text) != text:
                    raise DataError("one id has two texts", where | {"id": key}, "Fetch the file again.")
            gold = pair.find("goldLabel")
            rows.append(
                {
                    "id": f"{file.stem}/{_text(pair, 'id', where)}",
                    "topic": file.stem,
                    "prompt": _text(pair, "debateMetaData/title", where),
                    "stance": _text(pair, "arg1/stance", where),
                    "a": f"{file.stem}/{_text(pair, 'arg1/id', where)}",
                    "b": f"{file.stem}/{_text(pair, 'arg2/id', where)}",
                    "gold": None if gold is None else _vote(_text(pair, "goldLabel", where), where),
                    "votes": [
                        {
                            "vote": _vote(_text(vote, "value", where), where),
                            "annotator": workers.setdefault(_text(vote, "turkID", where), f"w{len(workers):04d}"),
                        }
                        for vote in pair.findall("mTurkAssignments/mTurkAssignment")
                    ],
                }
            )
    return rows, texts


def _text(node: ElementTree.Element, path: str, where: Mapping[str, object]) -> str:
    found = node.find(path)
    if found is None or found.text is None or not found.text.strip():
        raise DataError(f"there is no {path}", where, "Give the XML of UKPConvArg1-full-XML, unchanged.")
    return found.text.strip()


def _vote(value: str, where: Mapping[str, object]) -> str:
    if value not in VOTE:
        raise DataError("a vote is not understood", dict(where) | {"vote": value}, "Known are a1, a2 and equal.")
    return VOTE[value]


def _write(path: Path, rows: Iterable[dict]) -> None:
    """Gzip without a date, so that the same corpus gives the same bytes."""
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(content, mtime=0))


def main(config: Config) -> None:
    """Convert and say what was found."""
    files = list(config.corpus.glob("*.xml"))
    if not files:
        raise DataError("there are no XML files", {"folder": config.corpus}, "Give the folder UKPConvArg1-full-XML.")
    rows, texts = convert(files)
    config.output.mkdir(parents=True, exist_ok=True)
    _write(config.output / config.pairs, rows)
    _write(config.output / config.arguments, ({"id": key, "text": text} for key, text in texts.items()))
    votes = [vote for row in rows for vote in row["votes"]]
    print(
        f"{len(files)} topics, {len(rows):,} pairs, {len(votes):,} votes, {len(texts):,} arguments, "
        f"{len({vote['annotator'] for vote in votes}):,} annotators, "
        f"{sum(row['gold'] is None for row in rows):,} pairs without gold"
    )
    print(f"written to {config.output / config.pairs} and {config.output / config.arguments}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="the folder UKPConvArg1-full-XML")
    parser.add_argument("output", type=Path, help="the folder to write to")
    given = parser.parse_args()
    main(Config(given.corpus, given.output))
