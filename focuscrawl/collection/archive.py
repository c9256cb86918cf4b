"""A collection as an archive of the Web: the pages as they came, to be replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.collection.answers import answer_of
from focuscrawl.errors import UserError
from focuscrawl.webs.warc_recorder import WarcRecorder

if TYPE_CHECKING:
    from pathlib import Path

    from focuscrawl.collection.collection import Collection

_CHANGED = ("content-length", "content-encoding", "transfer-encoding")  # bodies are unpacked


def write_archive(collection: Collection, path: Path) -> None:
    """Write the pages of a collection as a compressed WARC 1.1, in the order fetched.

    Pages that are not kept any more are left out of the collection, too.

    Addresses of servers and requests as they were sent are in the crawl's own recording only.

    Parameters
    ----------
    path : a draft, which may have any name
    """
    named = path.with_name(f"{path.name}.warc.gz")
    try:
        kept = []
        with WarcRecorder(named) as recorder:
            for page in collection.pages:
                answer = answer_of(collection.webs, page.url)
                if answer is None:
                    continue
                kept.append(page)
                headers = [each for each in answer.headers if each[0].lower() not in _CHANGED]
                recorder.record(
                    request_method="GET",
                    url=page.url,
                    request_headers=[],
                    request_body=b"",
                    status=answer.status,
                    reason="OK",
                    response_headers=[*headers, ("Content-Length", str(len(answer.body)))],
                    body_raw=answer.body,
                    ip=None,
                    at=page.fetched_at,
                )
        if collection.pages and not kept:
            raise UserError(
                "none of the pages is kept any more, as an archive has them: name a recording of "
                "them with --web"
            )
        if lost := len(collection.pages) - len(kept):
            collection.left_out["not kept, or changed since"] += lost
        collection.pages = kept
        named.replace(path)
    finally:
        named.unlink(missing_ok=True)
