"""Routes of the studio for tables of a crawl's pages, queued URLs and hosts."""

from __future__ import annotations

import csv
import math
import time
from dataclasses import asdict
from io import StringIO
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from focuscrawl.errors import UserError
from focuscrawl.report.plain_text import escape_csv_cell
from focuscrawl.report.url_tables import (
    KINDS,
    UNFETCHED_STATES,
    UrlFilter,
    count_rows,
    list_rows,
    sql_of,
)
from focuscrawl.studio.page_rendering import PREFIX
from focuscrawl.topics import read_verdicts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.crawl_analyses import OpenCrawls
    from focuscrawl.studio.page_rendering import StudioContext

    Values = dict[str, Any]


class _Column(NamedTuple):
    """A column of a table; `order` sorts by the column, and is empty if nothing does."""

    name: str
    label: str
    order: str = ""
    is_number: bool = False
    is_optional: bool = True
    starts_ascending: bool = False
    is_shown: bool = True  # until a person chooses columns


class _Table(NamedTuple):
    """A table of URLs or hosts; `kinds` are labels by the values of a query."""

    heading: str
    about: str
    columns: tuple[_Column, ...]
    kinds: dict[str, str]
    number: str  # label of the number that `least` and `most` filter
    sort: str  # first order
    fields: tuple[str, ...]  # columns of the CSV file


#: by the last part of their path, in the order of `count_rows`
TABLES = {
    "pages": _Table(
        "Pages",
        "All fetches of the crawl. The relevance is the judgement of the critic; the "
        "score is the relevance that the strategy predicted when the URL left the frontier.",
        (
            _Column("relevance", "Relevance", "relevance", is_number=True, is_optional=False),
            _Column("page", "Page", is_optional=False),
            _Column("score", "Score", "score", is_number=True),
            _Column("class", "Class"),
            _Column("host", "Host", "host", starts_ascending=True, is_shown=False),
            _Column("fetch", "Fetch", "newest", is_number=True),
            _Column("outcome", "Outcome"),
        ),
        {"page": "pages", "duplicate": "duplicates", "redirect": "redirects",
         "nothing": "no page"},
        "Relevance",
        "relevance",
        ("seq", "url", "title", "relevance", "score", "status", "kind", "host", "topic"),
    ),
    "frontier": _Table(
        "Frontier (queued URLs)",
        "All URLs that the crawl has found but not fetched. The score of a URL is the relevance "
        "that the strategy predicts for its page.",
        (
            _Column("score", "Score", "score", is_number=True, is_optional=False),
            _Column("url", "URL", is_optional=False),
            _Column("host", "Host", "host", starts_ascending=True, is_shown=False),
            _Column("state", "State"),
            _Column("depth", "Clicks from a start page", is_number=True),
            _Column("found", "Found", "newest", is_number=True),
        ),
        {"queued": "queued", "excluded": "excluded", "unfollowed": "not followed"},
        "Score",
        "score",
        ("number", "url", "host", "score", "state", "depth", "referrer"),
    ),
    "hosts": _Table(
        "Hosts",
        "All hosts of the crawl. The share is the number of relevant pages of a host, divided by "
        "the number of fetches from the host.",
        (
            _Column("relevant", "Relevant pages", "relevant", is_number=True, is_optional=False),
            _Column("name", "Host", "name", is_optional=False, starts_ascending=True),
            _Column("share", "Share", "share", is_number=True),
            _Column("fetches", "Fetches", "fetches", is_number=True),
            _Column("queued", "Queued URLs", "queued", is_number=True),
        ),
        {},
        "Relevant pages",
        "relevant",
        ("name", "fetches", "relevant", "share", "queued"),
    ),
}  # fmt: skip
_CSV_PART = 5000  # rows
_CSV_INTERVAL = 0.2  # seconds between two checks whether the rows are sorted
assert (*TABLES["pages"].kinds,) == KINDS
assert (*TABLES["frontier"].kinds,) == UNFETCHED_STATES


def routes_of_table(context: StudioContext, crawls: OpenCrawls, which: str) -> list[Route]:
    """Return the routes of a table in `TABLES`: page, part of the page, JSON and CSV."""
    table, path = TABLES[which], f"/crawls/{{name:path}}/{which}"

    def shown(request: Request) -> Values:
        crawl = context.requested_crawl(request)
        query = {k: v for k, v in request.query_params.items() if v}
        filters = {k: v for k, v in query.items() if k not in ("after", "before")}
        found = read_table(crawls, crawl.path, which, query)
        verdicts = {} if which == "hosts" else read_verdicts(crawl.path)
        return {
            "crawl": crawl.name,
            "which": which,
            "table": table,
            "query": query,
            "filters": filters,
            "is_later_part": query != filters,
            "backwards": "before" in query,
            "found": found,
            "verdicts": verdicts,
            "sql": sql_of(which, _parse_query(filters)),
        }

    def answer(request: Request) -> Response:
        crawl = context.requested_crawl(request)
        return JSONResponse(read_table(crawls, crawl.path, which, request.query_params))

    def rows(request: Request) -> Response:
        values = shown(request)
        response = context.render("url_rows", values)
        # the address of the whole page, so that it can be reloaded and shared
        place = f"{context.base}/crawls/{quote(values['crawl'])}/{which}"
        response.headers["HX-Replace-Url"] = f"{place}?{urlencode(values['query'])}"
        return response

    def csv_file(request: Request) -> Response:
        crawl = context.requested_crawl(request)
        wanted = _parse_query(request.query_params)
        return StreamingResponse(
            _csv_lines(crawls, crawl.path, which, wanted),
            media_type="text/csv; charset=utf-8",
            headers={
                "Content-Disposition": f'attachment; filename="{which}.csv"',
                "Content-Security-Policy": "sandbox",
                "Cache-Control": "no-store",
            },
        )

    at_api = f"{PREFIX}/crawls/{{name:path}}/host-rows" if which == "hosts" else f"{PREFIX}{path}"
    return [
        Route(at_api, answer),
        Route(f"{PREFIX}{path}.csv", csv_file),
        Route(path, context.page_endpoint("urls", shown)),
        Route(f"/parts{path}", rows),
    ]


def read_table(crawls: OpenCrawls, path: Path, which: str, query: Mapping[str, str]) -> Values:
    """Return a part of a crawl's table ``pages``, ``frontier`` (URLs not fetched) or ``hosts``.

    The result has the fields of `focuscrawl.report.url_tables.UrlRows`, ``total`` (number of rows
    of the table), ``as_of`` (time of the data, ISO 8601, UTC) and ``sorting``. While the sorted
    copy of the crawl is being written, the only field is ``sorting`` with the value True.
    """
    wanted = _parse_query(query)
    with crawls.sorted(path) as found:
        if found is None:
            return {"sorting": True}
        connection, copy = found
        after, before = query.get("after", ""), query.get("before", "")
        part = list_rows(connection, which, wanted, after=after, before=before)
        return {
            "sorting": False,
            **asdict(part),
            "total": count_rows(connection)[[*TABLES].index(which)],
            "as_of": copy.started_at.isoformat(timespec="seconds"),
        }


def _csv_lines(crawls: OpenCrawls, path: Path, which: str, wanted: UrlFilter) -> Iterator[str]:
    """Yield all rows of a table that match a filter as CSV, some thousand rows at a time.

    The sorted copy is opened for each part, because the parts are read in different threads.
    """
    table = TABLES[which]
    yield _csv(table.fields, [dict(zip(table.fields, table.fields, strict=True))])
    after: str | None = ""
    while after is not None:
        with crawls.sorted(path) as found:
            if found is None:
                time.sleep(_CSV_INTERVAL)
                continue
            part = list_rows(found[0], which, wanted, after=after, n=_CSV_PART)
        yield _csv(table.fields, part.rows)
        after = part.after


def _csv(fields: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        cells = [row[name] for name in fields]
        writer.writerow(escape_csv_cell(each) if isinstance(each, str) else each for each in cells)
    return text.getvalue()


def _parse_query(query: Mapping[str, str]) -> UrlFilter:
    """Parse the filters of a query; raise `UserError` if a value is invalid."""
    status = query.get("status", "").strip()
    if status and not (status.isascii() and status.isdigit() and len(status) <= 3):
        raise UserError("status must be an HTTP status such as 200, or 0 for no response")
    return UrlFilter(
        least=_parse_number(query, "least"),
        most=_parse_number(query, "most"),
        host=query.get("host", "").strip(),
        kind=query.get("kind", "").strip(),
        status=int(status) if status else None,
        search=query.get("search", "").strip(),
        order=query.get("order", "").strip(),
    )


def _parse_number(query: Mapping[str, str], name: str) -> float | None:
    given = query.get(name, "").strip()
    if not given:
        return None
    try:
        found = float(given)
    except ValueError:
        found = math.nan
    if math.isnan(found):
        raise UserError(f"{name} must be a number such as 0.5")
    return found
