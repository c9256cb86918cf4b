"""Recordings of pages that a test makes up."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from focuscrawl.webs import WarcRecorder

HTML = "text/html; charset=utf-8"


def record(path: Path, pages: Iterable[tuple[str, str | bytes]], content_type: str = HTML) -> Path:
    """Record pages, URL and HTML, as if they had been fetched; return `path`."""
    with WarcRecorder(path) as recorder:
        for url, html in pages:
            recorder.record(
                request_method="GET",
                url=url,
                request_headers=[],
                request_body=b"",
                status=200,
                reason="OK",
                response_headers=[("Content-Type", content_type)],
                body_raw=html if isinstance(html, bytes) else html.encode(),
                ip=None,
                at=datetime(2024, 1, 1, tzinfo=UTC),
            )
    return path
