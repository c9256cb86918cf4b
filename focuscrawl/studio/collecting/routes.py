"""Addresses of what is taken home, of the API and of the pages."""

from __future__ import annotations

import os
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from focuscrawl.crawl import CrawlFolder
from focuscrawl.errors import UserError
from focuscrawl.studio.api import JOBS_CHANGED
from focuscrawl.studio.collecting.exports import EXPORTS, FORMATS
from focuscrawl.studio.collecting.files import chunks, find, home_of, listed, opened
from focuscrawl.studio.collecting.preview import preview
from focuscrawl.studio.jobs import JobState
from focuscrawl.studio.posted import text_of, with_values
from focuscrawl.studio.rendering import PREFIX, render

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.desk import Desk

_JOBS = 10  # that are shown


def routes(desk: Desk) -> list[Route]:
    """Return the routes of the API and of the pages."""
    folder = desk.folder

    def named(request: Request) -> tuple[str, Path]:
        path = desk.folder.crawl(request.path_params["name"])
        return folder.name_of(path), path

    def found(request: Request) -> dict[str, Any]:
        name, path = named(request)
        jobs = [job for job in desk.jobs.all(subject=name) if job.kind in EXPORTS][:_JOBS]
        return {
            "crawl": name,
            "exports": {each.name: each for each in EXPORTS.values()},
            "formats": FORMATS,
            "files": listed(path),
            "jobs": jobs,
            "running": any(job.state is JobState.RUNNING for job in jobs),
        }

    def api(request: Request) -> Response:
        shown = found(request)
        offered = [
            {"name": each.name, "title": each.title, "about": each.about}
            for each in EXPORTS.values()
        ]
        jobs = [job.plain() for job in shown["jobs"]]
        return JSONResponse({"exports": offered, "files": shown["files"], "jobs": jobs})

    def begin(request: Request, values: Mapping[str, Any]) -> Response:
        name, path = named(request)
        what = text_of(values, "export")
        if what not in EXPORTS:
            raise UserError(f"no export {what!r:.40}: take one of {', '.join(EXPORTS)}")
        # never an option, whatever the folder is called
        arguments = EXPORTS[what].arguments(f"./{name}", CrawlFolder(path).identity(), values)
        with desk.beginning():
            jobs = desk.jobs.all(kind=what, subject=name)
            if any(job.state is JobState.RUNNING for job in jobs):
                raise UserError("it is being made at this moment: wait for its end")
            home_of(path)
            job = desk.jobs.begin(what, name, arguments)
        return JSONResponse(job.plain(), HTTPStatus.ACCEPTED, headers=JOBS_CHANGED)

    def file(request: Request) -> Response:
        _, path = named(request)
        content, called = opened(find(path, request.query_params.get("file", "")))
        headers = {
            "Content-Disposition": f'attachment; filename="{called}"',
            "Content-Length": str(os.fstat(content.fileno()).st_size),
            "Content-Security-Policy": "sandbox",
            "Cache-Control": "no-store",
        }
        return StreamingResponse(
            chunks(content), media_type="application/octet-stream", headers=headers
        )

    def first_rows(request: Request) -> dict[str, Any]:
        name, path = named(request)
        file_name = request.query_params.get("file", "")
        return {"crawl": name, "file": file_name, "shown": preview(find(path, file_name))}

    home, at = "/crawls/{name:path}/take-home", f"{PREFIX}/crawls/{{name:path}}/take-home"
    return [
        Route(f"{at}/file", file),
        Route(f"{at}/preview", lambda request: JSONResponse(first_rows(request)["shown"])),
        Route(at, api),
        Route(at, with_values(begin), methods=["POST"]),
        Route(home, lambda request: render(desk, "take_home", found(request))),
        Route(f"/parts{home}", lambda request: render(desk, "take_home_files", found(request))),
        Route(
            f"/parts{home}/preview",
            lambda request: render(desk, "take_home_preview", first_rows(request)),
        ),
    ]
