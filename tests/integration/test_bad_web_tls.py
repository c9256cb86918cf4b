"""Certificates: by default any will do; checked where the user asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .badweb import BadWeb, explore

if TYPE_CHECKING:
    import pytest

REFUSED = ("tls-expired", "tls-self-signed", "tls-wrong-host")


def test_certificates_are_checked_if_asked_for(
    bad_web: BadWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", bad_web.authority)
    seeds = bad_web.seeds("tls-good", *REFUSED)
    given = {"DOWNLOAD_VERIFY_CERTIFICATES": 1, "RETRY_TIMES": 0}
    run = explore(tmp_path / "crawl", seeds, weighed=False, **given)
    pages = run.pages(bad_web)
    assert pages["tls-good/"]["status"] == 200
    errors = {case: pages[f"{case}/"]["error"] for case in REFUSED}
    assert all(error.startswith("certificate: ") for error in errors.values()), errors
    assert run.summary("errors") == "certificate: 3"
    assert "Traceback" not in run.stderr
