"""Models and crawls of strangers run no code."""

from __future__ import annotations

import ast
import io
import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from focuscrawl.apprentice.apprentice import FORMAT, Apprentice, read_apprentice, save_apprentice
from focuscrawl.apprentice.learners import join_packs, unpack_options
from focuscrawl.cli.main import main
from focuscrawl.critic import load_critic
from focuscrawl.errors import UserError
from focuscrawl.foundation.arrays import pack_arrays
from focuscrawl.page import parse_page
from focuscrawl.store import CrawlStore
from focuscrawl.strategies import StrategyContext
from focuscrawl.strategies.apprentice_strategy import ApprenticeStrategy

from .toy_crawl import toy_critic

ROOT = Path(__file__).resolve().parents[2]
#: modules that make objects, and so can call anything, from what a file says
MAKERS = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve"}
MAKERS |= {"yaml", "ruamel", "jsonpickle", "torch"}
CALLS = {"eval", "exec", "compile", "__import__", "read_pickle", "system", "popen", "Popen"}


class Evil:
    """Touches a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._marker,)


@pytest.fixture
def evil(tmp_path: Path) -> bytes:
    """Arrays under all names that files of ours use, each an object that touches ``marker``."""
    array = np.array([Evil(tmp_path / "marker")], dtype=object)
    packed = io.BytesIO()
    names = ("counts", "words", "calibration", "options", "lesson", "urls", "m_coef", "adopted")
    np.savez(packed, allow_pickle=True, **dict.fromkeys(names, array))
    return packed.getvalue()


def test_the_evil_arrays_do_what_they_are_feared_for(evil: bytes, tmp_path: Path) -> None:
    with np.load(io.BytesIO(evil), allow_pickle=True) as arrays:
        assert arrays["words"].dtype == object
    assert (tmp_path / "marker").exists()


def test_a_strangers_critic_runs_no_code(evil: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "critic"
    shutil.copytree(ROOT / "models" / "demo", folder)
    (folder / "model.npz").write_bytes(evil)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["model.npz"] = sha256(evil).hexdigest()
    del manifest["digest"]
    digest = sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest | {"digest": digest}))
    with pytest.raises(UserError, match="Object arrays cannot be loaded"):
        load_critic(str(folder), "/Sports/Cycling")
    assert not (tmp_path / "marker").exists()


def test_a_strangers_apprentice_runs_no_code(evil: bytes, tmp_path: Path) -> None:
    manifest: dict[str, object] = {"kind": "apprentice", "format": FORMAT.format}
    manifest["files"] = {"apprentice.npz": sha256(evil).hexdigest()}
    digest = sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"digest": digest}))
    (tmp_path / "apprentice.npz").write_bytes(evil)
    with pytest.raises(UserError, match="Object arrays cannot be loaded"):
        read_apprentice(tmp_path)
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        unpack_options(evil)
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("m_weights", lambda x: np.full_like(x, np.nan)),
        ("m_weights", lambda x: np.full_like(x, 1e300)),
        ("m_weights", lambda x: np.full(3, "a text")),
        ("m_dense", lambda x: np.full_like(x, np.inf)),
        ("m_dense", lambda x: x[:2]),
        ("m_prior", lambda x: np.append(x, 0.0)),
        ("m_used", lambda x: np.array([1 << 40])),
        ("p_total", lambda x: np.full_like(x, np.nan)),
        ("p_used", lambda x: np.array([1 << 40])),
        ("s_all", lambda x: np.array([np.nan, 0.1])),
        ("s_all", lambda x: np.array([1.0])),
        ("options", lambda x: np.frombuffer(b"[" * 100_000, np.uint8)),
        ("options", lambda x: np.frombuffer(b'{"batch": "many"}', np.uint8)),
        ("options", lambda x: np.frombuffer(b"7", np.uint8)),
        ("options", lambda x: x[:-3]),
    ],
)
def test_an_apprentice_of_numbers_that_are_none_is_refused(
    tmp_path: Path, name: str, change: Callable[[Any], Any]
) -> None:
    exported = Apprentice().export()
    with np.load(io.BytesIO(exported)) as archive:
        arrays = {each: archive[each] for each in archive.files}
    arrays["m_used"], arrays["m_weights"] = np.array([1, 5]), np.array([0.5, -0.5])
    for each in ("p", "s"):
        arrays[f"{each}_used"] = np.array([3])
        arrays[f"{each}_total"] = arrays[f"{each}_count"] = np.array([1.0], np.float32)
    save_apprentice(pack_arrays(arrays, compressed=False), tmp_path / "sound", {})
    assert read_apprentice(tmp_path / "sound")
    arrays[name] = change(arrays[name])
    save_apprentice(pack_arrays(arrays, compressed=False), tmp_path / "unsound", {})
    with pytest.raises(UserError):
        read_apprentice(tmp_path / "unsound")


def test_a_strangers_crawl_holds_no_model_that_runs_code(evil: bytes, tmp_path: Path) -> None:
    strategy = ApprenticeStrategy(StrategyContext(critic=toy_critic(), random_state=0, web=None))
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        strategy.load(join_packs(evil, evil))
    assert not (tmp_path / "marker").exists()


def test_a_critic_that_only_a_crawl_names_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("open('marker', 'w').close()\njudge = print\n")
    identity = {"topic": "/Sports/Cycling", "critic_name": "evil:judge", "strategy": "best-first"}
    (tmp_path / "crawl").mkdir()
    CrawlStore.create(tmp_path / "crawl" / "crawl.db", identity).close()
    command = ["apprentice", "train", "crawl", "--web", "demo", "--out", "model"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2
    assert "add --critic evil:judge" in result.output
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("read_only", [True, False])
def test_the_schema_of_a_strangers_crawl_is_not_trusted(tmp_path: Path, read_only: bool) -> None:
    path = tmp_path / "crawl.db"
    CrawlStore.create(path, {}).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIEW evil AS SELECT load_extension('./evil') AS loaded")
    store = CrawlStore.open(path, read_only=read_only)
    try:
        ((trusted,),) = store.rows("PRAGMA trusted_schema")
        assert trusted == 0
        refusal = r"unsafe use|not authorized|prohibited"
        with pytest.raises(sqlite3.OperationalError, match=refusal):
            list(store.rows("SELECT * FROM evil"))
    finally:
        store.close()


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "focuscrawl").rglob("*.py")), ids=lambda path: path.stem
)
def test_no_module_makes_objects_of_files(path: Path) -> None:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            packages = {alias.name.partition(".")[0] for alias in node.names}
            assert not packages & {*MAKERS, "joblib"}
        elif isinstance(node, ast.ImportFrom):
            package = (node.module or "").partition(".")[0]
            assert package not in MAKERS
            # joblib pickles what goes to processes of our own; its `load` and `Memory`, files
            names = {alias.name for alias in node.names}
            assert package != "joblib" or names <= {"Parallel", "delayed"}
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
            on = getattr(getattr(node.func, "value", None), "id", None)
            begins = path.stem == "processes" and name == "Popen"  # and through no shell
            fine = (name, on) == ("compile", "re") or begins
            assert name not in CALLS or fine
            for keyword in node.keywords:
                assert (keyword.arg, ast.unparse(keyword.value)) != ("allow_pickle", "True")
                assert (keyword.arg, ast.unparse(keyword.value)) != ("shell", "True")


def _is(node: ast.AST, module: str, name: str) -> bool:
    """Return whether a part of a module is an attribute of another one."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.value, ast.Name)
        and node.value.id == module
    )


def _last_name(node: ast.Attribute | ast.Name) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id


def test_python_is_started_in_one_way() -> None:
    """Nobody else names the interpreter, or makes a pool, which looks into the current folder."""
    starts = {"sys.executable", "ProcessPoolExecutor", "get_context", "Process", "Parallel"}
    known = {
        "processes.py": starts,
        "tasks.py": {"sys.executable"},  # of Spark, within `safe_python_path`
        "run_process.py": {"get_context", "Process"},  # a forkserver, within it as well
        "audit.py": {"Parallel"},  # the same
        "corpus.py": {"Parallel"},  # the same
    }
    for path in (ROOT / "focuscrawl").rglob("*.py"):
        used = {
            "sys.executable" if _is(node, "sys", "executable") else _last_name(node)
            for node in ast.walk(parse(path))
            if isinstance(node, ast.Attribute | ast.Name)
        }
        assert used & starts <= known.get(path.name, set()), path
        if used & starts:
            assert path.name == "processes.py" or "safe_python_path" in used, path


def test_databases_are_opened_in_one_place() -> None:
    """Where it is looked at what lies beside them, and what their schema would run."""
    opening = {
        path.relative_to(ROOT / "focuscrawl").as_posix()
        for path in (ROOT / "focuscrawl").rglob("*.py")
        for node in ast.walk(parse(path))
        if _is(node, "sqlite3", "connect")
    }
    assert opening == {"foundation/databases.py"}


def test_a_page_reads_no_files(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("topsecret")
    uri = (tmp_path / "secret").as_uri()
    html = f"""<?xml version="1.0"?><!DOCTYPE html [<!ENTITY x SYSTEM "{uri}">]>
        <html xmlns:xi="http://www.w3.org/2001/XInclude"><title>&x;</title>
        <p>seen &x; <xi:include href="{uri}" parse="text"/> <iframe src="{uri}"></iframe>"""
    view = parse_page(html.encode(), "http://host.example/")
    assert "seen" in view.tokens
    assert "topsecret" not in view.tokens
    assert "topsecret" not in (view.title or "")


def test_every_threat_names_tests_that_there_are() -> None:
    text = (ROOT / "docs" / "research" / "security-tests.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    threats = [row for row in rows if not row.startswith("| threat |")]
    assert len(threats) > 15
    named = re.compile(r"`(test_\w+\.py)::(test_\w+)`")
    assert not [threat for threat in threats if not named.search(threat)]
    for file, test in named.findall(text):
        defined = [path.read_text("utf-8") for path in (ROOT / "tests").glob(f"*/{file}")]
        assert any(f"\ndef {test}(" in source for source in defined), (file, test)
