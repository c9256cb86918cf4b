"""The one format of model folders: critics, apprentices and models of paths."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from focuscrawl.apprentice import apprentice as apprentices
from focuscrawl.critic import critic_files as critics
from focuscrawl.critic.critic_files import read_critic
from focuscrawl.errors import UserError
from focuscrawl.foundation.arrays import decode_lines, encode_lines, unpack_arrays
from focuscrawl.paths import path_model as paths

if TYPE_CHECKING:
    from focuscrawl.foundation.model_folder import ModelFormat

DEMO = Path(__file__).resolve().parents[2] / "models" / "demo"
FORMATS = [critics.FORMAT, apprentices.FORMAT, paths.FORMAT]


def made(form: ModelFormat, out: Path, content: bytes = b"some arrays") -> dict[str, bytes]:
    files = {name: name.encode() + content for name in form.files}
    form.write(out, form.kinds[0], {"topic": "/Boats"}, files)
    return files


def refused(form: ModelFormat, folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        form.read(folder, lambda _, files: files)
    assert "\n" not in str(caught.value)
    assert form.name in str(caught.value)
    return str(caught.value)


def rewrite(folder: Path, manifest: dict[str, Any]) -> None:
    (folder / "manifest.json").write_text(json.dumps(manifest))


def manifest_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return found


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_comes_back_and_leaves_nothing_else(form: ModelFormat, tmp_path: Path) -> None:
    files = made(form, tmp_path / "deep" / "a")
    manifest, digest = form.read(tmp_path / "deep" / "a", lambda manifest, _: manifest)
    assert (manifest["topic"], manifest["kind"]) == ("/Boats", form.kinds[0])
    assert digest == manifest["digest"]
    assert form.read(tmp_path / "deep" / "a", lambda _, found: found)[0] == files
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["a"]
    assert form.exists_in(tmp_path / "deep" / "a")
    assert not form.exists_in(tmp_path)


def test_a_model_that_cannot_be_replaced_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    form, out = FORMATS[0], tmp_path / "a"
    files, rename = made(form, out), Path.rename

    def fails(path: Path, target: Path) -> Path:
        if path.name == "new":
            raise OSError(errno.EIO, "I/O error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(UserError, match="I/O error"):
        form.write(out, form.kinds[0], {}, dict.fromkeys(form.files, b""), force=True)
    assert form.read(out, lambda _, found: found)[0] == files
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_what_is_there_is_kept(form: ModelFormat, tmp_path: Path) -> None:
    files = made(form, tmp_path / "a")
    with pytest.raises(UserError, match=r"exists already: name another folder$"):
        made(form, tmp_path / "a", b"others")
    with pytest.raises(UserError, match="or --force"):
        form.write(tmp_path / "a", form.kinds[0], {}, files, force=False)
    form.write(tmp_path / "a", form.kinds[0], {}, dict.fromkeys(files, b""), force=True)
    assert all(not (tmp_path / "a" / name).read_bytes() for name in files)
    (tmp_path / "thesis").mkdir()
    with pytest.raises(UserError, match=f"not a {form.name}"):
        form.write(tmp_path / "thesis", form.kinds[0], {}, files, force=True)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_what_is_not_whole_is_refused(form: ModelFormat, tmp_path: Path) -> None:
    assert f"contains no {form.name}" in refused(form, tmp_path / "none")
    for name in [*form.files, "manifest.json"]:
        folder = tmp_path / name
        made(form, folder)
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-3])
        assert "is a damaged" in refused(form, folder)
        (folder / name).unlink()
        assert f"with `{form.command}`" in refused(form, folder)
    made(form, tmp_path / "b")
    rewrite(tmp_path / "b", manifest_of(tmp_path / "b") | {"topic": "/Cars"})
    assert "manifest.json was changed" in refused(form, tmp_path / "b")
    rewrite(tmp_path / "b", [])  # type: ignore[arg-type]
    assert "not a table" in refused(form, tmp_path / "b")


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_other_kinds_and_formats_are_refused(form: ModelFormat, tmp_path: Path) -> None:
    made(form, tmp_path / "a")
    manifest = manifest_of(tmp_path / "a")
    rewrite(tmp_path / "a", manifest | {"kind": "pickle"})
    assert "kind is 'pickle'" in refused(form, tmp_path / "a")
    for number in (form.format + 1, form.format - 1, "2", None):
        rewrite(tmp_path / "a", manifest | {"format": number})
        said = f"of format {number!r}; this version of focuscrawl reads format {form.format}"
        assert said in refused(form, tmp_path / "a")


@pytest.mark.parametrize("error", [KeyError("labels"), TypeError("no text"), EOFError()])
def test_what_does_not_fit_together_is_one_line(tmp_path: Path, error: Exception) -> None:
    def unpack(manifest: dict[str, Any], files: dict[str, bytes]) -> None:
        raise error

    made(critics.FORMAT, tmp_path / "a")
    with pytest.raises(UserError, match="is a damaged critic"):
        critics.FORMAT.read(tmp_path / "a", unpack)


def test_the_critic_that_comes_with_the_package_is_of_the_format(tmp_path: Path) -> None:
    trained, digest = read_critic(DEMO)
    assert digest == manifest_of(DEMO)["digest"]
    again = tmp_path / "again"
    critics.save_critic(trained, again)
    # each version of Python writes zip files in a way of its own; what is in them is the same
    arrays = [unpack_arrays((at / "model.npz").read_bytes()) for at in (DEMO, again)]
    assert [*arrays[0]] == [*arrays[1]]
    for name, array in arrays[0].items():
        np.testing.assert_array_equal(array, arrays[1][name], strict=True)
    assert (again / "examples.csv").read_bytes() == (DEMO / "examples.csv").read_bytes()
    shutil.copytree(DEMO, tmp_path / "copy")
    assert critics.FORMAT.exists_in(tmp_path / "copy")
    assert not paths.FORMAT.exists_in(tmp_path / "copy")


@pytest.mark.parametrize("lines", [(), ("one",), ("eins", "zwei", "größer")])
def test_texts_come_back_from_arrays(lines: tuple[str, ...]) -> None:
    assert decode_lines({"words": encode_lines(lines)}, "words") == lines
    with pytest.raises(ValueError, match="array words"):
        decode_lines({"words": np.zeros(3)}, "words")


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_a_pipe_in_a_model_keeps_nobody_waiting(form: ModelFormat, tmp_path: Path) -> None:
    made(form, tmp_path / "model")
    for name in (*form.files, "manifest.json"):
        path = tmp_path / "model" / name
        content = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(UserError, match=f"{name} is not a regular file"):
            form.read(tmp_path / "model", lambda _, files: files)
        if name != "manifest.json":
            path.unlink()
            path.write_bytes(content)
    assert not form.exists_in(tmp_path / "model")


def test_a_file_of_a_model_that_is_beyond_measure_is_not_read(tmp_path: Path) -> None:
    made(critics.FORMAT, tmp_path / "model")
    os.truncate(tmp_path / "model" / "manifest.json", 1 << 42)
    with pytest.raises(UserError, match="is larger than 2 GiB"):
        critics.FORMAT.read(tmp_path / "model", lambda _, files: files)
