"""Models of paths: time of training on 200 paths, and of scoring the links of a page.

Run: ``python benchmarks/bench_paths.py`` after the tests, which unpack the webs. Times are CPU
seconds, which other processes affect little.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

import lxml.html
import numpy as np
from replays import WEBS, recording

from focuscrawl.crawl.scope import read_seeds
from focuscrawl.page import parse_page
from focuscrawl.paths.path_features import PathFeatureReader
from focuscrawl.paths.path_training import TrainingOptions, WebPages, read_corpus, train
from focuscrawl.paths.training_paths import PathSampling, extract_paths, read_page_labels
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.paths.path_model import PathModel

_GOAL, _PATHS = "faculty", 200
_SCORED = {"webkb": 300, "uci": 300, "wikipedia": 60}


def trained() -> PathModel:
    """Train on 200 paths of three departments, and print the time of each step."""
    web = open_web(str(recording("webkb")))
    pages = WebPages(web)
    table = read_page_labels(
        Path(WEBS / "webkb" / "labels.csv"), web.resolve, label="page_class", site="university"
    )
    doors = [url for url in web.resolve(read_seeds(str(WEBS / "webkb" / "portal.txt"), ())) if url]
    found = [
        extract_paths(
            door,
            pages.links,
            table.goals(_GOAL, door),
            table.labels,
            sampling=PathSampling(17, 3.0),
            random_state=0,
        )
        for door in doors[:3]
    ]
    walks = [path for of_site in found for path in of_site][:_PATHS]
    model = None
    for milestones in (False, True):
        training = TrainingOptions(milestones=milestones)
        begun = process_time()
        corpus = read_corpus(walks, pages, PathFeatureReader(training.reading, keep_words=True))
        read = process_time()
        model = train(corpus, training)
        name = "milestones" if milestones else "ends only"
        print(
            f"{len(corpus.paths)} paths, {name}: features {read - begun:.1f} s, "
            f"fit {process_time() - read:.1f} s CPU ({model.crf.n_iter_} iterations, "
            f"{len(model.vocabulary):,} features)"
        )
    assert model is not None
    return model


def scored(model: PathModel, name: str, count: int) -> None:
    """Print the time per page of parsing, and of scoring the page and its links."""
    web = open_web(str(recording(name)))
    urls = list(islice(web.urls(), 0, None, max(sum(1 for _ in web.urls()) // count, 1)))
    answers = [answer for url in urls if (answer := web.fetch(url)) is not None]
    bodies = [(a.body, a.url) for a in answers if b"<html" in a.body[:2000].lower()]
    reader = PathFeatureReader(model.reading)
    parse = view_time = score = 0.0
    links = 0
    for _ in range(2):  # the first time words and URLs are new
        parse = view_time = score = 0.0
        links = 0
        for body, url in bodies:
            begun = process_time()
            lxml.html.fromstring(body)
            parsed = process_time()
            view = parse_page(body, url)
            viewed = process_time()
            seen = model.page_potentials(reader, view, url)
            of_links = model.link_potentials(reader, view, url, np.arange(len(view.links)))
            labels = model.link_label_probabilities(
                model.start_label_probabilities(seen), of_links
            )
            assert np.isfinite(labels @ model.rewards).all()
            score += process_time() - viewed
            parse += parsed - begun
            view_time += viewed - parsed
            links += len(view.links)
    n = len(bodies)
    print(
        f"{name}: {n} pages, {links / n:.0f} links a page; milliseconds a page: "
        f"lxml {1e3 * parse / n:.2f}, page view {1e3 * view_time / n:.2f}, "
        f"paths {1e3 * score / n:.2f} "
        f"({1e6 * score / max(links, 1):.0f} us a link); "
        f"view and paths are {(view_time + score) / parse:.1f} x lxml"
    )


if __name__ == "__main__":
    fitted = trained()
    for web_name, pages_scored in _SCORED.items():
        scored(fitted, web_name, pages_scored)
