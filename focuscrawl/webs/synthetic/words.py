"""The vocabulary: topics, their words and names, and the words all pages share.

The lists run from frequent to rare. They do not depend on the random state, so that a critic
trained on one synthetic web reads every other.
"""

from __future__ import annotations

from dataclasses import dataclass

from focuscrawl.webs.synthetic.seeded_random import mix, zipf_urn

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
FACETS = ("guides", "notes", "clubs", "letters", "archive", "news", "reports", "people")
VAGUE = ("read more", "here", "this page", "more", "details", "continue", "part two", "see also")


def _words(text: str) -> list[str]:
    return text.split()


@dataclass(frozen=True, slots=True)
class Topic:
    """A leaf of the taxonomy, with its words.

    Attributes
    ----------
    path : "/Sports/Cycling"
    leaf : "Cycling"
    family : "Sports", the top of the path
    stems : first parts of host names
    urns : words to draw from (`chance.zipf_urn`), by letter: n nouns, a adjectives, g gerunds,
        p made-up names, f nouns that the family shares
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
    """Make up a name; each owner favours some sounds, so that its names resemble each other."""
    bits = mix(owner, rank)
    text = ""
    for syllable in range(2 + bits % 2):
        bits = mix(bits, syllable)
        onset = _ONSETS[(owner * 5 + bits % 6) % len(_ONSETS)]
        vowel = _VOWELS[(bits >> 8) % (7 if syllable else len(_VOWELS))]
        text += onset + vowel
    return (text + _CODAS[(owner * 3 + (bits >> 20) % 4) % len(_CODAS)]).capitalize()


def _names(owner: int, count: int) -> tuple[str, ...]:
    return zipf_urn([_name(owner, rank) for rank in range(count)])


def _topics() -> tuple[Topic, ...]:
    families = {
        words[0]: zipf_urn(words[1:]) for words in map(_words, _FAMILIES.strip().split("\n"))
    }
    topics = []
    for number, entry in enumerate(_TOPICS.strip().removeprefix("/").split("\n/"), 1):
        head, _, body = entry.partition("\n")
        path, _, stems = head.partition(" | ")
        family = path.partition("/")[0]
        words = _words(body)
        urns = {
            "n": zipf_urn(words[:-22]),
            "a": zipf_urn(words[-22:-10]),
            "g": zipf_urn(words[-10:]),
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
#: for each topic the numbers of the topics near it: same family, or neighbours by subject
KIN = tuple(
    tuple(
        number
        for number, other in enumerate(TOPICS)
        if other is not topic
        and (other.family == topic.family or _CROSSING.get(topic.leaf) == other.leaf)
    )
    for topic in TOPICS
)
