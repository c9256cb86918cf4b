from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focuscrawl.errors import UserError
from focuscrawl.taxonomy import Label, Taxonomy, iterate_labels, prune, read_labels


def table(folder: Path, text: str | bytes) -> Path:
    path = folder / "labels.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            'url,topic,split\n"http://a.org/?q=1,2",/A/B/,test\nhttp://b.org/, Top/C ,\n\n',
            [Label("http://a.org/?q=1,2", "/A/B", "test"), Label("http://b.org/", "/C", "train")],
        ),
        ("\ufeffTopic,note,URL\r\n/A,x,http://a/\r\n", [Label("http://a/", "/A", "train")]),
        (gzip.compress(b"url,topic\nhttp://a/,/A\n"), [Label("http://a/", "/A", "train")]),
    ],
    ids=["split", "columns in any order, others beside", "gzip"],
)
def test_rows(tmp_path: Path, content: str | bytes, expected: list[Label]) -> None:
    assert read_labels(table(tmp_path, content)) == expected


def test_rows_come_one_by_one(tmp_path: Path) -> None:
    rows = iterate_labels(table(tmp_path, "url,topic\nhttp://a/,/A\nhttp://b/,\n"))
    assert next(rows).url == "http://a/"
    with pytest.raises(UserError, match="row 2"):
        next(rows)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty: it needs the columns url,topic"),
        (b"url,topic\n", "no rows below"),
        (
            b"url,page_class,university\nu,c,v\n",
            "has the columns url,page_class,university: it needs the columns url,topic,[split]",
        ),
        (b"url,topic\nhttp://a/\n", "row 1 has no topic"),
        (b"url,topic\n,/A\n", "row 1 has no url"),
        (b"url,topic\nhttp://a/,/\xff\n", "not UTF-8"),
        (b'url,topic\nhttp://a/,"' + b"x" * 200_000 + b"\n", "is not CSV"),
        (gzip.compress(b"url,topic\nhttp://a/,/A\n" * 99, mtime=0)[:-20], "damaged gzip"),
        (b"\x1f\x8bnot gzip at all", "damaged gzip"),
    ],
    ids=["empty", "header only", "columns", "short", "no url", "bytes", "csv", "cut gzip", "gzip"],
)
def test_a_table_that_cannot_be_used_is_one_line(
    tmp_path: Path, content: bytes, says: str
) -> None:
    path = table(tmp_path, content)
    with pytest.raises(UserError) as error:
        read_labels(path)
    message = str(error.value)
    assert says in message
    assert message.startswith(f"{path}")
    assert "\n" not in message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        read_labels(tmp_path / "absent.csv")
    with pytest.raises(UserError, match="directory"):
        read_labels(tmp_path)


@given(content=st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode)))
def test_any_bytes_are_labels_or_a_one_line_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = table(tmp_path_factory.mktemp("any"), b"url,topic\n" + content)
    try:
        labels = read_labels(path)
    except UserError as error:
        complaint = str(error)
        labels = []
    else:
        complaint = ""
    assert bool(labels) != bool(complaint)
    assert "\n" not in complaint
    assert all(label.url and label.topic.startswith("/") for label in labels)


@pytest.mark.webs
@pytest.mark.parametrize("web", ["wikipedia", "uci"])
def test_recorded_webs_keep_their_topics_and_their_pages_find_a_leaf(
    webs_dir: Path, web: str
) -> None:
    labels = read_labels(webs_dir / web / "labels.csv")
    labelled = Taxonomy.from_labels(labels)
    tree = prune(labelled, min_examples=1)
    assert tree.leaves == labelled.leaves
    assert all(set(tree.examples(leaf)) <= set(labelled.examples(leaf)) for leaf in tree.leaves)
    assert {tree.leaf_of(label.topic) for label in labels} == set(tree.leaves)
