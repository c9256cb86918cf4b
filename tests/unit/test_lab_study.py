"""Study files: what they say, and what they may not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from focuscrawl.errors import UserError
from focuscrawl.lab.planning import load_or_train_critic
from focuscrawl.lab.study_file import read_study
from focuscrawl.webs import open_web

STUDY = """
draws = 2
budget = 50
[[webs]]
name = "small"
recording = "${PLACE}/small.warc"  # $NOBODY minds a comment
labels = "labels.csv"
seeds = "SEEDS"
without = ["/C"]
[[strategies]]
strategy = "best-first"
[[strategies]]
label = "fast"
strategy = "apprentice"
trained_on = "best-first"
options = {batch = 5}
"""


@pytest.fixture
def study_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLACE", "/somewhere")
    (tmp_path / "seeds.csv").write_text("topic,url\n/A,http://a/\n/B,http://b/\n/C,http://c/\n")
    (tmp_path / "portal.txt").write_text("http://a/\n")
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace("SEEDS", str(tmp_path / "seeds.csv")))
    return path


def test_a_study_is_read(study_file: Path) -> None:
    study = read_study(study_file)
    (web,) = study.webs
    assert web.recording == "/somewhere/small.warc"
    assert web.topics == ("/A", "/B")
    assert web.portal is None
    first, second = study.contenders
    assert (first.label, first.depends_on) == ("best-first", [])
    assert (second.label, second.depends_on) == ("fast", ["best-first"])
    assert second.options == {"batch": 5}
    said = (study.title, study.baseline, study.draws, study.budget)
    assert said == ("study", "best-first", 2, 50.0)


def test_a_study_from_the_portal_needs_topics_but_no_seeds(study_file: Path) -> None:
    text = study_file.read_text()
    portal = study_file.with_name("portal.txt")
    seeds = next(line for line in text.splitlines() if line.startswith("seeds"))
    study_file.write_text(text.replace(seeds, f'portal = "{portal}"\ntopics = ["/A"]'))
    (web,) = read_study(study_file).webs
    assert (web.seeds, web.portal, web.topics) == (None, str(portal), ("/A",))
    study_file.write_text(text.replace(seeds, f'portal = "{portal}"'))
    with pytest.raises(UserError, match="has no topic"):
        read_study(study_file)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("draws = 2", "draws = "), "is not a valid TOML file"),
        (("[[strategies]]", "[[other]]"), "lacks 'strategies'"),
        (('name = "small"', ""), "webs 1 lacks the entry 'name'"),
        (("draws = 2", 'baseline = "slow"'), "no strategy labelled 'slow'"),
        (("draws = 2", 'draws = "2"'), "draws must be a whole number above 0, not '2'"),
        (("draws = 2", "draws = true"), "draws must be a whole number above 0, not True"),
        (("draws = 2", "draws = 0"), "draws must be a whole number above 0"),
        (("budget = 50", "budget = 1.5"), "above 0, or a share below 1, not 1.5"),
        (("budget = 50", "budget = 0"), "above 0, or a share below 1, not 0"),
        (("draws = 2", "draw = 2"), "has the unknown entry 'draw': did you mean draws"),
        (("without", "zebra"), "webs 1 has the unknown entry 'zebra': choose from"),
        (('without = ["/C"]', "without = [3]"), "without must be a list of strings"),
        (('without = ["/C"]', "topics = []"), "has no topic"),
        (("options = {batch = 5}", "options = 5"), "options must be a table"),
        (("options = {batch = 5}", "budget = -1"), "strategies 2: budget must be"),
        (("seeds.csv", "none.csv"), "cannot be read"),
        (('label = "fast"', 'label = "best-first"'), "two strategies called 'best-first'"),
        (('label = "fast"', 'label = "/best-first/"'), "two strategies called"),
        (('label = "fast"', 'label = ""'), "'' cannot name a folder, as names of strategies must"),
        (('label = "fast"', 'label = "/"'), "'/' cannot name a folder"),
        (('label = "fast"', 'label = ".."'), "'..' cannot name a folder"),
        (('label = "fast"', f'label = "{"x" * 300}"'), "cannot name a folder"),
        (("${PLACE}", "${NOWHERE_SET}"), "variable NOWHERE_SET: set it"),
        (('trained_on = "best-first"', 'trained_on = "best"'), "'fast' depends on 'best'"),
        (('trained_on = "best-first"', 'within = "fast"'), "'fast' depends on its own crawl"),
        (
            ('strategy = "best-first"', 'strategy = "best-first"\nwithin = "fast"'),
            "depends on its own crawl: remove one of",
        ),
        (('strategy = "apprentice"', 'strategy = "random"'), "trained_on requires"),
        (("without", 'portal = "none.txt"\nwithout'), "portal none.txt not found"),
        (('name = "small"', 'name = "../small"'), "name '../small' must be a folder name"),
        (('name = "small"', 'name = ".."'), "name '..' must be a folder name"),
        (("without", 'kind = "words"\nwithout'), "kind must be one of discriminative, flat"),
        (("without", 'kind = "discriminative"\nall_words = true\nwithout'), "all_words requires"),
    ],
)
def test_mistakes_in_a_study(study_file: Path, change: tuple[str, str], said: str) -> None:
    changed = study_file.read_text().replace(*change)
    assert changed != study_file.read_text()
    study_file.write_text(changed)
    with pytest.raises(UserError, match=said) as caught:
        read_study(study_file)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["strategies", "webs"])
def test_what_is_no_table_is_one_line(study_file: Path, key: str) -> None:
    kept = study_file.read_text().replace(f"[[{key}]]", "[[x]]").splitlines()
    study_file.write_text("\n".join([f"{key} = 5", *kept]))
    with pytest.raises(UserError, match=rf"{key} must be tables that start with \[\[{key}"):
        read_study(study_file)


def test_files_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_study(Path("no-such-study.toml"))
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(UserError, match=r"labels .* cannot be read \(.*\): give a CSV"):
            load_or_train_critic(str(path), open_web("demo"))


@pytest.mark.parametrize(
    ("name", "counts"),
    [("apprentice", [13, 7]), ("papers", [13, 7]), ("critics", [13, 8, 5]), ("harvest", [13, 13])],
)
def test_the_studies_that_come_with_the_project(
    name: str, counts: list[int], webs_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBS", "anywhere")
    monkeypatch.setenv("LABELS", str(webs_dir))
    study = read_study(Path(__file__).parents[2] / "studies" / f"{name}.toml")
    assert [len(web.topics) for web in study.webs] == counts
    for web in study.webs:
        assert web.phrases.keys() <= set(web.topics)
    if name in ("apprentice", "papers"):
        assert (study.baseline, study.draws) == ("best-first", 3)
