"""Creates the topics, words and sentences of the synthetic web from seeded random numbers.

Word lists are sorted from frequent to rare words. The word lists do not depend on the random
state, so a critic that was trained on one synthetic web also works on other synthetic webs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


T = TypeVar("T")

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_BLOCK = 256  # random numbers computed at once; a page needs 200 to 1,000
_COUNTERS: NDArray[np.uint64] = np.arange(1, _BLOCK + 1, dtype=np.uint64) * np.uint64(_GOLDEN)


def hash_ints(*parts: int) -> int:
    """Hash integers to a 64-bit integer."""
    state = 0
    for part in parts:
        state = ((state ^ part) + _GOLDEN) & _MASK
        state = ((state ^ (state >> 30)) * _FIRST) & _MASK
        state = ((state ^ (state >> 27)) * _SECOND) & _MASK
        state ^= state >> 31
    return state


def fraction(*parts: int) -> float:
    """Hash integers to a number in [0, 1)."""
    return (hash_ints(*parts) >> 11) * 2.0**-53


def _units(key: int) -> Iterator[float]:
    counters = _COUNTERS + np.uint64(key)
    while True:
        state = counters
        state = (state ^ (state >> np.uint64(30))) * np.uint64(_FIRST)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(_SECOND)
        state ^= state >> np.uint64(31)
        yield from ((state >> np.uint64(11)) * 2.0**-53).tolist()
        counters = counters + _COUNTERS[-1]


class RandomStream:
    """A stream of random numbers that depends only on `key` and is equal on all machines.

    The generator is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), in which the n-th number is a
    hash of key + n. The random numbers are computed by integer operations and exact float
    products, so the numbers do not depend on the C library.
    """

    def __init__(self, key: int) -> None:
        #: returns the next number, uniform in [0, 1)
        self.unit = _units(key).__next__

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self.unit() < probability

    def between(self, low: int, high: int) -> int:
        """Return a random integer n with `low` <= n <= `high`."""
        return low + int(self.unit() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        """Return a random element of `items`, each with the same probability."""
        return items[int(self.unit() * len(items))]

    def rank(self, n: int) -> int:
        """Return a random rank from 0 to n - 1, in which low ranks are more probable."""
        return int(self.unit() * self.unit() * n)


class HashPicks:
    """Random choices from the bits of one 64-bit hash, which are faster than a `RandomStream`."""

    def __init__(self, bits: int) -> None:
        self._bits = bits

    def pick(self, items: Sequence[T]) -> T:
        """Return one of `items`, chosen by the remaining bits of the hash."""
        self._bits, digit = divmod(self._bits, len(items))
        return items[digit]


def repeat_by_zipf(items: Sequence[T]) -> tuple[T, ...]:
    """Return a list in which the k-th of `items` is repeated in proportion to 1/k.

    A random element of the list then approximately follows Zipf's law.
    """
    n = len(items)
    return tuple(
        item for k, item in enumerate(items, 1) for _ in range(max(1, (2 * n + k) // (2 * k)))
    )


_TOPICS = """
/Arts/Music/Jazz | bluenote swing combo
saxophone trumpet quartet solo band bass drummer pianist improvisation chord rhythm bebop club
standard tune session horn ballad stage melody chorus groove trio scale riff bandleader album
concert brass clarinet vibraphone syncopation tempo arrangement audience encore
swinging improvised modal syncopated smoky brassy mellow upbeat live late-night acoustic melodic
improvising swinging comping soloing phrasing recording rehearsing transcribing playing jamming
/Arts/Music/Opera | aria libretto belcanto
soprano tenor aria libretto orchestra conductor overture chorus act baritone stage score role
premiere recitative mezzo duet melody composer costume scene voice singer ensemble curtain audience
house repertoire staging production finale prelude concert director surtitle encore
dramatic lyric tragic operatic baroque romantic staged vocal orchestral heroic comic melodic
singing staging conducting rehearsing performing casting composing phrasing directing recording
/Arts/Photography | aperture darkroom lens
camera lens exposure aperture shutter film print portrait landscape tripod light negative focus
darkroom contrast flash filter frame developer composition sensor viewfinder highlight shadow grain
studio exhibition zoom enlarger paper gallery pixel tone scene backlight album
sharp monochrome wide-angle blurred underexposed grainy digital candid toned vivid soft-lit printed
photographing developing printing framing focusing exposing retouching scanning enlarging cropping
/Computers/Databases | rowstore schema querylog
query table index transaction schema row column join key replica lock cursor server log storage
backup view constraint partition planner cache migration cluster record engine field snapshot
normalisation trigger shard statement disk commit software version user
relational indexed transactional distributed normalised nested stored cached consistent columnar
atomic slow-running
indexing querying joining sharding replicating migrating normalising tuning caching partitioning
/Computers/Security | cipherpost firewall exploit
password attacker vulnerability patch encryption key firewall malware token certificate exploit
server log threat cipher audit intrusion breach phishing worm sandbox signature hash secret user
permission software scanner backdoor protocol version network incident overflow disk advisory
encrypted malicious vulnerable trusted compromised remote secure leaked unpatched anonymous
hardened signed
encrypting patching hardening auditing scanning authenticating attacking sandboxing logging signing
/General/News | herald dispatch courier
council mayor election minister report storm budget police court traffic bridge school hospital
strike vote weather headline editor reporter town railway tax interview debate festival airport
committee statement crowd spokesman neighbourhood flood opening harbour accident inquiry
local national political official public municipal breaking regional annual urgent weekly disputed
reporting voting announcing debating striking commuting investigating campaigning rebuilding
opening
/General/Shopping | bargain outlet trolley
price offer discount delivery order basket voucher stock sale gift brand refund checkout customer
warranty catalogue shipping size invoice parcel deal warehouse coupon bundle supplier card return
review label wishlist shop clearance bestseller accessory receipt purchase
cheap reduced free discounted exclusive limited new bestselling refundable boxed imported branded
buying ordering shipping saving wrapping comparing returning delivering browsing unpacking
/Home/Cooking | skillet larder simmer
recipe sauce oven pan butter garlic onion flour dough soup dish salt pepper oil herb kitchen stock
bread cake tomato cheese egg stew spice knife lemon sugar pastry roast salad basil pumpkin rosemary
simmer whisk ladle
baked roasted crisp tender spicy sweet savoury buttery simmered salted fresh seasonal
baking roasting simmering chopping kneading frying seasoning whisking tasting stirring
/Home/Gardening | trowel allotment compost
garden soil compost seed bed plant border lawn rose hedge pruning bulb seedling mulch weed pot
greenhouse shrub spade vegetable tomato flower watering slug leaf root frost pumpkin basil trellis
trowel perennial cutting rosemary orchard stem
planted hardy sunny shady raised organic flowering well-drained pruned climbing seasonal fresh
planting pruning sowing weeding mulching watering digging composting propagating harvesting
/Science/Astronomy | nebula perihelion zenith
telescope star galaxy planet orbit nebula comet eclipse spectrum moon light observatory sky cluster
dust supernova asteroid lens mass magnitude observer crater radiation horizon eyepiece ring
constellation dwarf parallax pulsar meteor sunspot transit halo disk telescopes
stellar lunar distant orbital faint galactic spectral solar bright infrared red-shifted observed
observing orbiting imaging stargazing measuring tracking collimating charting sketching resolving
/Science/Botany | herbarium stamen sepal
plant leaf species flower root seed genus stem pollen petal moss fern specimen herbarium cell spore
fungus tissue orchid chlorophyll habitat meadow stamen bark shrub sap flora algae lichen bulb
taxonomy soil germination tree canopy seedling
vascular flowering native botanical woody perennial fossil rare leafy pollinated hardy alpine
flowering germinating classifying collecting pressing pollinating rooting sampling identifying
branching
/Science/Geology | bedrock strata moraine
rock fault mineral sediment layer lava basalt granite fossil quartz crust volcano erosion glacier
strata limestone plate magma earthquake crystal core mantle sandstone basin valley outcrop ridge
moraine hammer slate soil map dust crater specimen shale
igneous sedimentary volcanic tectonic folded fossil glacial weathered metamorphic layered coastal
alpine
mapping drilling eroding folding sampling dating hammering faulting surveying collecting
/Sports/Cycling | velo peloton spokes
bike wheel saddle chain gravel brake gear climb ride tyre rider pedal frame handlebar sprint race
helmet stage pump cadence spoke descent puncture peloton tour crank mountain training track bottle
team derailleur fork hub commute pannier
steep off-road geared aerodynamic tubeless uphill fast muddy carbon paved lightweight long-distance
riding climbing racing touring cornering pedalling sprinting training commuting descending
/Sports/Running | stride tempo finishline
run runner marathon pace shoe trail mile stride race knee training track lap interval finish sprint
hill cadence sock half-marathon warm-up ankle heart recovery jog distance coach calf start relay
medal blister injury team tour bottle
fast easy long-distance barefoot steady uphill muddy tired cushioned aerobic early-morning flat
running jogging racing stretching pacing training tapering sprinting recovering stepping
"""

_FAMILIES = """
Arts work artist audience style critic collection evening review piece museum history school
Computers system program file code machine data developer test memory bug release tool
General week price customer report office company visitor centre service morning city card
Home kitchen garden season house water summer hand tool family weekend pot shelf
Science sample survey theory field measurement university expedition data model paper age map
Sports race training season club coach team finish record winner distance muscle event
"""

_NOUNS = """
time year way day thing people world life part place week point group problem fact question hand
number night home word area story month lot study book eye job side kind head house friend hour
game line end member reason idea name body information change minute result morning help person
art history party effect use center team detail list letter answer note page visitor season
summer winter photograph map road street table room window corner price choice rule habit plan
step start light weather water colour sound mistake method example advice opinion neighbour
"""
_ADJECTIVES = """
good new old small large great early late simple common careful useful different clear quiet
short long important second whole easy difficult honest practical strange familiar regular
patient surprising local cheap modern plain reliable famous forgotten favourite ordinary
"""
_SEASONS = "spring,summer,autumn,winter,March,June,October,the rain,the dark"

#: parts of section names; a host has no more sections than these
SECTION_NAMES = ("guides", "notes", "clubs", "letters", "archive", "news", "reports", "people")
VAGUE_ANCHORS = (
    "read more",
    "here",
    "this page",
    "more",
    "details",
    "continue",
    "part two",
    "see also",
)


def _words(text: str) -> list[str]:
    return text.split()


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic (leaf) of the synthetic web's taxonomy, with the words of the topic.

    Attributes
    ----------
    path, leaf, family : "/Sports/Cycling", "Cycling", "Sports"
    stems : first parts of host names
    urns : words for random draws (`repeat_by_zipf`), by letter: n nouns, a adjectives, g gerunds,
        p made-up names, f nouns of the family
    """

    path: str
    leaf: str
    family: str
    stems: tuple[str, ...]
    urns: dict[str, tuple[str, ...]]


_ONSETS = tuple(_words("b br c d dr f g gr h j k l m n p r s st t tr v w z"))
_VOWELS = tuple(_words("a e i o u ai ei é ö ü"))
_CODAS = tuple(_words("l n r s nd rn th m ck x"))


def _name(owner: int, rank: int) -> str:
    """Make up a name; each owner prefers some sounds, so its names resemble each other."""
    bits = hash_ints(owner, rank)
    text = ""
    for syllable in range(2 + bits % 2):
        bits = hash_ints(bits, syllable)
        onset = _ONSETS[(owner * 5 + bits % 6) % len(_ONSETS)]
        vowel = _VOWELS[(bits >> 8) % (7 if syllable else len(_VOWELS))]
        text += onset + vowel
    return (text + _CODAS[(owner * 3 + (bits >> 20) % 4) % len(_CODAS)]).capitalize()


def _names(owner: int, count: int) -> tuple[str, ...]:
    return repeat_by_zipf([_name(owner, rank) for rank in range(count)])


def _topics() -> tuple[Topic, ...]:
    families = {
        words[0]: repeat_by_zipf(words[1:]) for words in map(_words, _FAMILIES.strip().split("\n"))
    }
    topics = []
    for number, entry in enumerate(_TOPICS.strip().removeprefix("/").split("\n/"), 1):
        head, _, body = entry.partition("\n")
        path, _, stems = head.partition(" | ")
        family = path.partition("/")[0]
        words = _words(body)
        urns = {
            "n": repeat_by_zipf(words[:-22]),
            "a": repeat_by_zipf(words[-22:-10]),
            "g": repeat_by_zipf(words[-10:]),
            "p": _names(number, 200),
            "f": families[family],
        }
        leaf = path.rpartition("/")[2]
        topics.append(Topic(f"/{path}", leaf, family, tuple(_words(stems)), urns))
    return tuple(topics)


TOPICS = _topics()
PLACES = _names(0, 300)
#: words that every page may use, by letter: c nouns, d adjectives, s seasons, l places
COMMON: dict[str, tuple[str, ...]] = {
    "c": tuple(_words(_NOUNS)),
    "d": tuple(_words(_ADJECTIVES)),
    "s": tuple(_SEASONS.split(",")),
    "l": PLACES,
}
_CROSSING = {"Botany": "Gardening", "Gardening": "Botany"}
#: indexes of the topics related to each topic: of the same family, or similar by subject
RELATED_TOPICS = tuple(
    tuple(
        number
        for number, other in enumerate(TOPICS)
        if other is not topic
        and (other.family == topic.family or _CROSSING.get(topic.leaf) == other.leaf)
    )
    for topic in TOPICS
)


# Slots: n noun, a adjective, g gerund, p name of the topic; f noun of the family; s season;
# l place; c noun and d adjective that any page may use
_TITLES = (
    "{a} {n} in {s}",
    "{g} in {s}",
    "{g} and the {a} {n}",
    "A guide to {g}",
    "Choosing the right {n}",
    "{n} and {n}: notes from {l}",
    "{l} {n} report",
    "Ten questions about the {n}",
    "{p}: the {a} {n}",
    "Why the {n} matters",
    "{g} for beginners: the {n}",
    "The {a} {n} of {p}",
    "{a} {n}, {a} {n}",
    "{g} with {p} in {l}",
    "The {d} {c} of {g}",
    "What {p} taught me",
)

_SENTENCES = (
    "The {a} {n} is the part of {g} that most people remember.",
    "After a year of {g} we still learn something about the {n} every week.",
    "{p} wrote that a {d} {n} matters more than any {f}.",
    "In {s} the {n} and the {n} are rarely as {d} as they look.",
    "Most of what is said about the {a} {n} in {l} is not true.",
    "You need a {n}, a little patience and a {d} {c}.",
    "There is no {c} without some {g}.",
    "Our {f} began with one {n} and ended with a {d} {c}.",
    "Ask {p} about the {n}, and the answer is always the same: more {g}.",
    "It was a {d} {c}, and nobody in {l} had expected the {a} {n}.",
    "What makes the {n} so {d} is the {f} behind it.",
    "Before {g}, look at the {n} once more.",
    "People from {l} came with their own {n} and stayed for the {f}.",
    "A {d} {c} later the {a} {n} was there again.",
    "We compared one {n} with another and found no {c}.",
    "For those who know {g} only from the {c}, the {n} is a surprise.",
    "The {c} of the {f} was to make every {n} more {d}.",
    "When {s} comes, {g} is a matter of the right {n}.",
    "They have had the same {a} {n} for years, and it works.",
    "Some of us prefer {g}, others the {d} {c} of the {n}.",
    "That is why the {f} should never be left to a {c}.",
    "It takes time to see how the {n} changes a {f}.",
    "{p} and {p} do not agree about the {n}.",
    "If the {n} is {a}, try again with a {d} one.",
)

_CHATTER = (
    "This site is run by a {d} {c} of people in {l}.",
    "We keep no {c} about you that we do not need.",
    "Write to us if a {c} is missing or a {c} is wrong.",
    "All {d} {c}s on these pages may be used with our name.",
    "The {c} is updated every {c}, as far as time permits.",
    "Nothing here is advice that a {d} {c} could replace.",
    "By using this {c} you accept the {d} {c} of the house.",
    "Cookies help us to remember your {c} until the next visit.",
)

_SLOT = re.compile(r"\{(.)\}")
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeiou])")
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_PLAIN = str.maketrans("éöü", "eou")


def _word(slot: str, topic: Topic, draws: RandomStream | HashPicks) -> str:
    return draws.pick(topic.urns[slot] if slot in topic.urns else COMMON[slot])


def _fill(template: str, word: Callable[[str], str]) -> str:
    text = _SLOT.sub(lambda slot: word(slot[1]), template)
    return _ARTICLE.sub(r"\1n ", text[0].upper() + text[1:])


def title(topic: Topic, bits: int) -> str:
    """Return a generated title about `topic`, which depends only on a 64-bit hash."""
    digits = HashPicks(bits)
    return _fill(digits.pick(_TITLES), lambda slot: _word(slot, topic, digits))


def sentence(topic: int, focus: float, draws: RandomStream) -> str:
    """Return a generated sentence.

    Parameters
    ----------
    topic : int
        Index into `TOPICS`.
    focus : float
        Share of the topic's slots with words of the topic; other slots get general words, or
        words
        of a related or random topic.
    """
    own = TOPICS[topic]

    def word(slot: str) -> str:
        if slot not in "nagp" or draws.unit() < focus:
            return _word(slot, own, draws)
        where = draws.unit()
        if where < 0.3:
            return _word(slot, TOPICS[draws.pick(RELATED_TOPICS[topic])], draws)
        if where < 0.5 or slot in "gp":
            return _word(slot, draws.pick(TOPICS), draws)
        return _word("c" if slot == "n" else "d", own, draws)

    return _fill(draws.pick(_SENTENCES), word)


def filler_sentence(draws: RandomStream) -> str:
    """Return a generated sentence without a topic, as on privacy pages."""
    return _fill(draws.pick(_CHATTER), lambda slot: _word(slot, TOPICS[0], draws))


def slug(text: str) -> str:
    """Return `text` in the form that is used in URLs."""
    return _NOT_SLUG.sub("-", text.lower().translate(_PLAIN)).strip("-")
