"""The figures of the papers, drawn from what a study has left behind.

Each figure is a function that makes a table, and one that draws the table; `FIGURES` names them
all. Nothing is crawled or computed at length here: that is the rest of `focuscrawl.lab`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.lab.figures import (
    agreement,
    distance,
    frontier,
    learning_curves,
    overlap,
    page_studies,
    rates,
    relevance,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from focuscrawl.lab.results import Results

#: name, also of a file: title, and a function that draws it; None where results do not allow it
FIGURES: dict[str, tuple[str, Callable[[Results], Figure | None]]] = {
    "a02-04-good-bad": (
        "Good and bad pages that the baseline collects [A02 figure 4]",
        relevance.good_bad_figure,
    ),
    "a02-05-relevance": (
        "Relevance of what the baseline fetches [A02 figure 5]",
        relevance.baseline_figure,
    ),
    "a02-06-window": (
        "Accuracy of naive Bayes against d_max, links held out [A02 figure 6]",
        page_studies.window_figure,
    ),
    "a02-06-window-unseen": (
        "Accuracy of naive Bayes against d_max, pages held out [A02 figure 6]",
        page_studies.unseen_window_figure,
    ),
    "a02-07-offsets": (
        "Words around a link with and without offsets [A02 figure 7]",
        page_studies.offsets_figure,
    ),
    "a02-08-gain": (
        "Information gain of words by offset [A02 figure 8]",
        page_studies.gain_figure,
    ),
    "a02-09a-rates": ("Share of the text by offset [A02 figure 9a]", page_studies.rate_figure),
    "a02-09b-tags": ("Frequency of elements by offset [A02 figure 9b]", page_studies.tags_figure),
    "a02-10-loss": (
        "Loss of the baseline and of the apprentice [A02 figure 10]",
        rates.loss_figure,
    ),
    "a02-11-overlap": (
        "URLs that baseline and apprentice have in common [A02 figure 11]",
        overlap.strategies_figure,
    ),
    "a02-12-recall": ("The recall crawl [A02 figure 12]", rates.recall_figure),
    "a02-13-priorities": (
        "The frontier before and after the apprentice takes over [A02 figure 13a]",
        frontier.priorities_figure,
    ),
    "a02-14-switch": (
        "Loss before and after the apprentice takes over [A02 figures 13b and 14]",
        rates.switch_figure,
    ),
    "a02-38-features": (
        "What class names and co-citation add [A02 section 3.8]",
        page_studies.features_figure,
    ),
    "l-learning-learnable": (
        "Learning curves of the learnable crawler [L]",
        learning_curves.learnable_figure,
    ),
    "l-learning-apprentice": (
        "Learning curves of the apprentice with knowledge [L]",
        learning_curves.apprentice_figure,
    ),
    "f99-rates": (
        "Rate of relevant pages: unfocused, soft and hard focus [F99]",
        rates.focus_figure,
    ),
    "f99-relevance": (
        "Relevance of fetches: unfocused, soft and hard focus [F99]",
        relevance.focus_figure,
    ),
    "f99-seeds": (
        "What crawls from different seeds have in common [F99]",
        overlap.seeds_figure,
    ),
    "f99-authorities": (
        "Best authorities of crawls from disjoint seeds [F99 figure 7]",
        agreement.agreement_figure,
    ),
    "f99-distance": (
        "Distance from the seeds of the most linked-to relevant pages [F99]",
        distance.distance_figure,
    ),
}
