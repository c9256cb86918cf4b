"""Start URLs out of what a search engine names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from focuscrawl.cli.topic_commands import topic
from focuscrawl.errors import UserError
from focuscrawl.knowledge import Keywords
from focuscrawl.search.candidates import Candidate, rank_candidates, read_candidates
from focuscrawl.topics import read_definition

BOATS, TAX, SAIL = (f"https://{name}.example/" for name in ("boats", "tax", "sail"))
ANSWERS = [  # as engines have them
    {"query": "boats", "results": [{"url": TAX, "title": "Tax", "content": "Forms"}]},
    {"webPages": {"value": [{"name": "<b>Sailing</b> boats", "url": BOATS, "snippet": "Masts"}]}},
    {"items": [{"link": SAIL, "title": "A sail", "snippet": "made of cloth", "rank": 1}]},
]


def test_candidates_are_found_in_the_answers_of_any_engine(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    file.write_text(json.dumps([*ANSWERS, {"url": "mailto:a@b.example", "title": "no page"}]))
    found = read_candidates(str(file), "boats")
    assert found == [
        Candidate(TAX, "Tax", "Forms"),
        Candidate(BOATS, "Sailing boats", "Masts"),
        Candidate(SAIL, "A sail", "made of cloth"),
    ]
    (tmp_path / "list.csv").write_text(f"url,title\n{BOATS},Boats\n{BOATS},Boats again\n")
    assert read_candidates(str(tmp_path / "list.csv"), "") == [Candidate(BOATS, "Boats", "")]
    for text, said in (("{}", "has no candidates"), ("[", "is not valid JSON")):
        file.write_text(text)
        with pytest.raises(UserError, match=said):
            read_candidates(str(file), "boats")


def test_those_most_like_the_keywords_come_first() -> None:
    found = [
        Candidate(TAX, "Tax", ""),
        Candidate(SAIL, "A sail", ""),
        Candidate(BOATS, "boats", ""),
    ]
    keywords = Keywords({"boats": 1.0, "sail": 0.5})
    assert [each.url for each, _ in rank_candidates(found, keywords)] == [BOATS, SAIL]


def test_the_best_join_the_seeds_of_a_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    definition = tmp_path / "boats.toml"
    definition.write_text(f'words = ["sailing boats"]\nseeds = ["{SAIL}"]\n')
    (tmp_path / "search_for_boats.py").write_text(
        f"def ask(query):\n    assert query == 'boats sailing'\n    return {ANSWERS!r}\n"
    )
    given = ["seeds", str(definition), "--candidates"]
    result = CliRunner().invoke(topic, [*given, "search_for_boats:ask"])
    assert result.exit_code == 0, result.output
    assert read_definition(definition).seeds == (SAIL, BOATS)
    for wrong, said in (
        ("search_for_boats:nothing", "AttributeError"),
        ("none.json", "none.json"),
    ):
        result = CliRunner().invoke(topic, [*given, wrong])
        assert isinstance(result.exception, UserError)
        assert said in str(result.exception)
