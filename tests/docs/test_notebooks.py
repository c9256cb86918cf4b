"""The notebooks run as they are, and are kept with what they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LARGEST = 120_000  # bytes of a notebook with its outputs


def _read(path: Path) -> nbformat.NotebookNode:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    assert isinstance(notebook, nbformat.NotebookNode)
    return notebook


def _shown(notebook: nbformat.NotebookNode) -> dict[str, list[Any]]:
    """Return what each cell shows: of a table the columns, of a picture that it is one.

    Numbers are left out: another processor may round the last digit otherwise, and a critic with
    word embeddings judges otherwise than one without. So is how wide they make a table.
    """
    shown = {}
    for cell in notebook.cells:
        outputs = []
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            head = "".join(data.get("text/plain", "").splitlines()[:1]).split()
            outputs.append((output.output_type, sorted(data), head if "text/html" in data else []))
        shown[cell.id] = outputs
    return shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small(path: Path) -> None:
    assert path.stat().st_size < LARGEST


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_is_kept(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # what a notebook crawls goes there
    # nothing of the user's own Jupyter, and its kernels last
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    notebook = _read(path)
    kept = _shown(notebook)
    resources = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=600,
        resources=resources,
        coalesce_streams=True,
    )
    client.execute()
    assert _shown(notebook) == kept
    shown = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    assert any("image/png" in out.get("data", {}) for out in shown)
    said = [out.text for out in shown if out.output_type == "stream"]
    assert not [text for text in said if "Warning" in text]
