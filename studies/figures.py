"""The figures of the papers, drawn from what a study has left behind.

Each figure is declared in `FIGURES`: what it is made of, a function that makes a table of that,
and one that draws the table. Nothing is crawled or computed at length here: that is the rest of
`focuscrawl.lab`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from studies import loss_figures, page_figures
from studies.figure_data import (
    APPRENTICE,
    HARD,
    OF_PAPER,
    OF_PAPER_OFFLINE,
    OF_PAPER_RECALL,
    OFFLINE,
    RECALL,
    SOFT,
    SWITCHED,
    UNFOCUSED,
    fetches,
    table,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from focuscrawl.lab.results import Results
    from studies.figure_data import Data


@dataclass(frozen=True)
class PaperFigure:
    """A figure of a paper.

    Attributes
    ----------
    title : str
        Title, with the figure's number in the paper.
    data : Data
        Returns the data from results.
    draw : Callable
        Draws the table.
    tabulate : Callable or None
        Computes the table from the data; None if the data are the table.
    whose : str or None
        Whose apprentice the figure shows, if there is a figure for each; part of the legend.
    strategies : tuple[str, ...]
        Labels of the strategies that the figure needs; empty for all.
    beside : str or None
        Command whose work the figure needs besides the crawls.
    """

    title: str
    data: Data
    draw: Callable[[pd.DataFrame], Figure]
    tabulate: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    whose: str | None = None
    strategies: tuple[str, ...] = ()
    beside: str | None = None

    def of(self, results: Results) -> Figure | None:
        """Draw the figure; None if the results lack its data."""
        found = self.data(results)
        if found is None:
            return None
        drawn = found if self.tabulate is None else self.tabulate(found)
        # so a strategy has the same style in all figures
        order = pd.CategoricalDtype([*results.strategies, SWITCHED])
        whose = [name for name in ("strategy", "first", "second") if name in drawn]
        figure = self.draw(drawn.astype(dict.fromkeys(whose, order)))
        for legend in figure.legends:
            if self.whose is not None:
                legend.set_title(self.whose)
        return figure


_ACCURACY = table("pages", "accuracy")
_FOCUS = fetches(UNFOCUSED, SOFT, HARD, needed=2)
_OURS = "our apprentice: logistic regression"
_THEIRS = "the paper's apprentice: naive Bayes"

#: figures by name, which is also the name of the file
FIGURES = {
    "a02-04-good-bad": PaperFigure(
        "Good and bad pages fetched by the baseline [A02 figure 4]",
        fetches(SOFT),
        loss_figures.draw_good_bad,
        loss_figures.good_bad_table,
        strategies=(SOFT,),
    ),
    "a02-05-relevance": PaperFigure(
        "Relevance of the baseline's fetches [A02 figure 5]",
        fetches(SOFT),
        loss_figures.draw_relevance,
        loss_figures.relevance_table,
        strategies=(SOFT,),
    ),
    "a02-06-window": PaperFigure(
        "Accuracy of naive Bayes against d_max, links held out [A02 figure 6]",
        _ACCURACY,
        page_figures.draw_window,
        partial(page_figures.window_table, folds="links"),
        strategies=(SOFT,),
        beside="pages",
    ),
    "a02-06-window-unseen": PaperFigure(
        "Accuracy of naive Bayes against d_max, pages held out [A02 figure 6]",
        _ACCURACY,
        page_figures.draw_window,
        partial(page_figures.window_table, folds="pages"),
        strategies=(SOFT,),
        beside="pages",
    ),
    "a02-07-offsets": PaperFigure(
        "Words around a link with and without offsets [A02 figure 7]",
        _ACCURACY,
        page_figures.draw_offsets,
        page_figures.offsets_table,
        strategies=(SOFT,),
        beside="pages",
    ),
    "a02-08-gain": PaperFigure(
        "Information gain of words by offset [A02 figure 8]",
        table("pages", "gain"),
        partial(page_figures.draw_by_offset, column="gain", label="mean gain of a word, bits"),
        strategies=(SOFT,),
        beside="pages",
    ),
    "a02-09a-rates": PaperFigure(
        "Rates of words by offset [A02 figure 9a]",
        table("pages", "rates"),
        partial(page_figures.draw_by_offset, column="rate", label="sum of rates of words at d"),
        strategies=(SOFT,),
        beside="pages",
    ),
    "a02-09b-tags": PaperFigure(
        "Frequency of elements by offset [A02 figure 9b]",
        table("pages", "tags"),
        page_figures.draw_tags,
        page_figures.tags_table,
        strategies=(SOFT,),
        beside="pages",
    ),
    "a02-10-loss": PaperFigure(
        "Lost pages of the baseline and of our apprentice [A02 figure 10]",
        partial(loss_figures.of_baseline_and, apprentices=(APPRENTICE, OFFLINE)),
        loss_figures.draw_curves,
        loss_figures.lost_table,
        whose=_OURS,
        strategies=(SOFT, APPRENTICE, OFFLINE),
    ),
    "a02-10-loss-paper": PaperFigure(
        "Lost pages of the baseline and of the paper's apprentice [A02 figure 10]",
        partial(loss_figures.of_baseline_and, apprentices=(OF_PAPER, OF_PAPER_OFFLINE)),
        loss_figures.draw_curves,
        loss_figures.lost_table,
        whose=_THEIRS,
        strategies=(SOFT, OF_PAPER, OF_PAPER_OFFLINE),
    ),
    "a02-11-overlap": PaperFigure(
        "URLs that the baseline and our apprentice have in common [A02 figure 11]",
        partial(loss_figures.of_two, apprentices=(OFFLINE, APPRENTICE)),
        loss_figures.draw_strategies,
        loss_figures.strategies_table,
        whose=_OURS,
        strategies=(SOFT, OFFLINE),
    ),
    "a02-11-overlap-paper": PaperFigure(
        "URLs that the baseline and the paper's apprentice have in common [A02 figure 11]",
        partial(loss_figures.of_two, apprentices=(OF_PAPER_OFFLINE,)),
        loss_figures.draw_strategies,
        loss_figures.strategies_table,
        whose=_THEIRS,
        strategies=(SOFT, OF_PAPER_OFFLINE),
    ),
    "a02-12-recall": PaperFigure(
        "The recall crawl with our apprentice [A02 figure 12]",
        fetches(SOFT, RECALL, OFFLINE),
        loss_figures.draw_curves,
        loss_figures.lost_table,
        whose=_OURS,
        strategies=(SOFT, RECALL, OFFLINE),
    ),
    "a02-12-recall-paper": PaperFigure(
        "The recall crawl with the paper's apprentice [A02 figure 12]",
        fetches(SOFT, OF_PAPER_RECALL, OF_PAPER_OFFLINE),
        loss_figures.draw_curves,
        loss_figures.lost_table,
        whose=_THEIRS,
        strategies=(SOFT, OF_PAPER_RECALL, OF_PAPER_OFFLINE),
    ),
    "a02-13-priorities": PaperFigure(
        "The frontier before and after our apprentice takes over [A02 figure 13a]",
        table("takeover", "priorities"),
        loss_figures.draw_priorities,
        loss_figures.priorities_table,
        whose=_OURS,
        strategies=(SOFT,),
        beside="takeover",
    ),
    "a02-13-priorities-paper": PaperFigure(
        "The frontier before and after the paper's apprentice takes over [A02 figure 13a]",
        table("takeover", "paper_priorities"),
        loss_figures.draw_priorities,
        loss_figures.priorities_table,
        whose=_THEIRS,
        strategies=(SOFT,),
        beside="takeover",
    ),
    "a02-14-switch": PaperFigure(
        "Loss before and after our apprentice takes over [A02 figures 13b and 14]",
        loss_figures.switched_fetches,
        loss_figures.draw_curves,
        loss_figures.lost_table,
        whose=_OURS,
        strategies=(SOFT,),
        beside="takeover",
    ),
    "a02-14-switch-paper": PaperFigure(
        "Loss before and after the paper's apprentice takes over [A02 figures 13b and 14]",
        partial(loss_figures.switched_fetches, name="paper_fetches"),
        loss_figures.draw_curves,
        loss_figures.lost_table,
        whose=_THEIRS,
        strategies=(SOFT,),
        beside="takeover",
    ),
    "a02-38-features": PaperFigure(
        "Effect of class names and co-citation as features [A02 section 3.8]",
        _ACCURACY,
        page_figures.draw_features,
        page_figures.features_table,
        strategies=(SOFT,),
        beside="pages",
    ),
    "l-learning-learnable": PaperFigure(
        "Learning curves of the learnable crawler [L]",
        loss_figures.points_of("learnable"),
        loss_figures.draw_learning,
    ),
    "l-learning-apprentice": PaperFigure(
        "Learning curves of the apprentice with knowledge [L]",
        loss_figures.points_of("apprentice"),
        loss_figures.draw_learning,
    ),
    "f99-rates": PaperFigure(
        "Rate of relevant pages: unfocused, soft and hard focus [F99]",
        _FOCUS,
        loss_figures.draw_curves,
        loss_figures.moving_table,
        strategies=(UNFOCUSED, SOFT, HARD),
    ),
    "f99-relevance": PaperFigure(
        "Relevance of fetches: unfocused, soft and hard focus [F99]",
        _FOCUS,
        loss_figures.draw_relevance,
        loss_figures.relevance_table,
        strategies=(UNFOCUSED, SOFT, HARD),
    ),
    "f99-seeds": PaperFigure(
        "Overlap of crawls from different seeds [F99]",
        loss_figures.of_draws,
        loss_figures.draw_seeds,
        loss_figures.seeds_table,
        strategies=(SOFT,),
    ),
    "f99-authorities": PaperFigure(
        "Best authorities of crawls from disjoint seeds [F99 figure 7]",
        table("authorities", "agreement"),
        page_figures.draw_agreement,
        page_figures.agreement_table,
        strategies=(SOFT,),
        beside="authorities",
    ),
    "f99-distance": PaperFigure(
        "Distance of the best authorities and of their servers from the seeds [F99]",
        table("pages", "authorities"),
        page_figures.draw_distance,
        page_figures.distance_table,
        strategies=(SOFT,),
        beside="pages",
    ),
}
