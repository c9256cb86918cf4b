"""Which pages a synthetic page links to.

Linked pages are nearer in topic than random ones, the nearer the fewer links apart (Davison,
SIGIR 2000; Menczer, JASIST 2004): most links of an author stay in the section, with the topic
on other hosts, or with a topic near it; popular hosts and pages get most of the links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.webs.synthetic.layout import NEWS, SHOPPING, SLOTS, SLOTS_OF, Host, Page, Places
from focuscrawl.webs.synthetic.words import KIN

if TYPE_CHECKING:
    from focuscrawl.webs.synthetic.seeded_random import Draws

_ODD_SECTIONS = (1, 1, 1, 3, 3, 5)


class Targets:
    """Draws targets for the links of one page."""

    def __init__(self, places: Places, page: Page, draws: Draws) -> None:
        self._places = places
        self._page = page
        self._draws = draws

    def same_section(self) -> Page:
        """Draw a page of the page's own section; the home page has none and gets any section."""
        host = self._page.host
        section = self._page.section
        if section < 0:
            section = self._draws.rank(host.sections)
        return self._in_section(host, section)

    def same_host(self) -> Page:
        """Draw a page of the page's own host, whatever its topic."""
        host = self._page.host
        return self._in_section(host, self._draws.between(0, host.sections - 1))

    def on_topic(self, topic: int) -> Page:
        """Draw a page from a section about `topic`, near by or on a popular host."""
        draws = self._draws
        block = self._block()
        slot = draws.pick(SLOTS_OF[topic])
        if draws.chance(0.3):
            section = draws.pick(_ODD_SECTIONS)
            host = self._places.host_at(block, slot, section)
            if section < host.sections:
                return self._in_section(host, section)
        host = self._places.host_at(block, slot)
        return self._in_section(host, 2 * draws.rank((host.sections + 1) // 2))

    def kin(self, topic: int) -> Page:
        """Draw a page about a topic near `topic`."""
        return self.on_topic(self._draws.pick(KIN[topic]))

    def anywhere(self) -> Page:
        """Draw a page about anything, often news or a shop."""
        draws = self._draws
        general = draws.chance(0.3)
        return self.on_topic(draws.pick((NEWS, SHOPPING)) if general else draws.pick(SLOTS))

    def home(self, topic: int) -> Page:
        """Draw the home page of a host whose main topic is `topic`."""
        slot = self._draws.pick(SLOTS_OF[topic])
        return self._places.page_at(self._places.host_at(self._block(), slot), 0)

    def _block(self) -> int:
        draws = self._draws
        own = self._page.host.block
        near = draws.unit()
        if near < 0.55:
            return own
        if near < 0.75:
            return (own + 1) % self._places.blocks
        return int(draws.unit() * draws.unit() * draws.unit() * self._places.blocks)

    def _in_section(self, host: Host, section: int) -> Page:
        draws = self._draws
        pages = self._places.section_pages(host, section)
        if draws.chance(0.08):
            return self._places.hub(host, section)
        return self._places.page_at(host, pages[draws.rank(len(pages))])
