"""What settings may be, and what is said of those that cannot."""

from __future__ import annotations

import pytest
from scrapy.settings import Settings

from focuscrawl.crawl.distilling import SITES
from focuscrawl.crawl_config import DEFAULT_BUDGET, DEMO_BUDGET, CrawlConfig, describe_accepted
from focuscrawl.engine.config_from_settings import config_as_written, read_config
from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import TEXT, one_of, whole_number
from focuscrawl.settings import DOWNLOAD_MAXSIZE
from focuscrawl.text import EXTRACTORS


def accepts(name: str) -> str:
    field = CrawlConfig.model_fields[name]
    return describe_accepted(field.annotation, field.metadata)


def test_what_is_not_set_has_its_default() -> None:
    assert read_config(Settings({"FOCUSCRAWL_TOPIC": None})) == read_config(Settings())
    unset = read_config(Settings(), {"web": "demo"})
    different = {
        name
        for name, field in CrawlConfig.model_fields.items()
        if getattr(unset, name) != field.default
    }
    assert different == {"web", "meta", "concurrency", "agent"}  # Scrapy's `USER_AGENT`


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("LIMITS", "0", False),
        ("LIMITS", 0, False),
        ("LIMITS", "False", False),
        ("LIMITS", "1", True),
        ("LIMITS", True, True),
        ("CALIBRATED", "0", False),
        ("BUDGET", " 12 ", 12),
        ("BUDGET", "", 1000),
        ("TOPIC", ["/A", "/B"], "/A,/B"),
        ("CALLBACK", "", ""),
        ("BACKOFF", "1.5", 1.5),
        ("META", '{"a": [1]}', {"a": [1]}),
        ("META", {"a": 1}, {"a": 1}),
        ("META", {"a": {1}}, {"a": {1}}),
        ("WARC", "1", "pages.warc.gz"),
        ("WARC", True, "pages.warc.gz"),
        ("WARC", "0", None),
        ("WARC", "", None),
        ("WARC", "x.warc.gz", "x.warc.gz"),
        ("DISTILL_SITES", "none", "none"),
    ],
)
def test_values(name: str, written: object, value: object) -> None:
    settings = Settings({f"FOCUSCRAWL_{name}": written, "DOWNLOAD_MAXSIZE": 5})
    assert getattr(read_config(settings), name.lower()) == value


@pytest.mark.parametrize("written", ["127.0.0.1, ::1", ["127.0.0.1", "::1"], ("127.0.0.1", "::1")])
def test_addresses(written: object) -> None:
    opened = read_config(Settings({"FOCUSCRAWL_PRIVATE_ADDRESSES": written})).private_addresses
    assert [str(each) for each in opened.allowed] == ["127.0.0.1/32", "::1/128"]


@pytest.mark.parametrize(
    ("name", "written", "must"),
    [
        ("ANY_MEDIA", "yes", "0 or 1"),
        ("LIMITS", "2", "0 or 1"),
        ("LIMITS", "", "0 or 1"),
        ("LIMITS", [], "0 or 1"),
        ("BACKOFF", "soon", "a number, 0 or more"),
        ("BACKOFF_MAX", "nan", "a number, 0 or more"),
        ("STOP_TIMEOUT", "inf", "a number, 0 or more"),
        ("STOP_TIMEOUT", -1, "a number, 0 or more"),
        ("NOT_MODIFIED_COST", "2", "a number from 0 to 1"),
        ("BUDGET", "-1", "a whole number, 0 or more"),
        ("STAGNATION", "1e3", "a whole number, 0 or more"),
        ("DISTILL", "²", "a whole number, 0 or more"),
        ("REVISIT_HUBS", "1.5", "a whole number, 0 or more"),
        ("HOST_FAILURES", "", "a whole number, 0 or more"),
        ("METRICS_PORT", "70000", "a whole number from 0 to 65535"),
        ("METRICS_ADDRESS", "localhost", "an IP address"),
        ("DISTILL_SITES", "page", "one of auto, host, domain, none"),
        ("META", "[1, 2]", "a JSON object"),
        ("META", "{playwright}", "a JSON object"),
        ("STRATEGY_OPTIONS", 5, "a JSON object"),
        ("WARC", "pages.zip", "0, 1, live or the name of a file that ends in .warc.gz"),
        ("PRIVATE_ADDRESSES", 5, "addresses and networks"),
    ],
)
def test_what_cannot_be_is_one_line_that_names_it(name: str, written: object, must: str) -> None:
    with pytest.raises(UserError) as refused:
        read_config(Settings({f"FOCUSCRAWL_{name}": written}))
    said = str(refused.value)
    assert said.startswith(f"FOCUSCRAWL_{name} must be {must}")
    assert said.endswith(f"not {written!r}")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("FOCUSCRAWL_BUGDET", "FOCUSCRAWL_BUDGET"),
        ("FOCUSCRAWL_LIMIT", "FOCUSCRAWL_LIMITS"),
        ("focuscrawl_progress", "FOCUSCRAWL_PROGRESS"),
        ("FOCUSCRAWL_STRATEGY_OPTION", "FOCUSCRAWL_STRATEGY_OPTIONS"),
    ],
)
@pytest.mark.parametrize("priority", ["project", "addon", "spider", "cmdline"])
def test_a_setting_that_does_not_exist_is_refused_with_the_nearest(
    name: str, nearest: str, priority: str
) -> None:
    settings = Settings()
    settings.set(name, 1, priority=priority)
    with pytest.raises(UserError, match=f"unknown setting {name}: did you mean {nearest}"):
        read_config(settings)


def test_pages_may_name_the_crawler_by_its_product_token() -> None:
    settings = Settings({"USER_AGENT": "Cycling-Survey/2 (+https://survey.example/about)"})
    assert read_config(settings).agent == "cycling-survey"
    settings.set("ROBOTSTXT_USER_AGENT", "clubbot")
    assert read_config(settings).agent == "clubbot"


def test_settings_of_others_are_none_of_our_business() -> None:
    read_config(Settings({"FOCUSCRAWLER": 1, "CLUBS_WAITS": 1, "BUDGET": "x"}))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"buget": "5"}, "unknown argument buget: valid arguments are topic, .*budget"),
        ({"web": " "}, "argument web is empty"),
        ({"budget": "abc"}, "^budget must be a whole number, 0 or more, not 'abc'"),
        ({"random_state": "-1"}, "^random_state must be a whole number"),
    ],
)
def test_arguments_that_cannot_be(given: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_config(Settings(), given)


def test_an_argument_overrides_its_setting() -> None:
    settings = Settings({"FOCUSCRAWL_BUDGET": 5, "FOCUSCRAWL_TOPIC": "/A"})
    config = read_config(settings, {"budget": "7"})
    assert (config.budget, config.topic) == (7, "/A")


def test_a_plan_is_made_of_both() -> None:
    settings = Settings({"FOCUSCRAWL_LIMITS": "0", "CONCURRENT_REQUESTS_PER_DOMAIN": 3})
    settings.set("FOCUSCRAWL_STRATEGY_OPTIONS", '{"batch": 5}')
    given = {"topic": "/A", "apprentice": "models/apprentice", "budget": "9"}
    config = read_config(settings, given)
    assert config.strategy_options == {"batch": 5, "begin_with": "models/apprentice"}
    assert config == CrawlConfig(
        topic="/A",
        budget=9,
        limits=False,
        options={"batch": 5},
        apprentice="models/apprentice",
        meta={"download_maxsize": DOWNLOAD_MAXSIZE},
        per_host=3,
        delay=settings.getfloat("DOWNLOAD_DELAY"),
        concurrency=settings.getint("CONCURRENT_REQUESTS"),
        obey_meta_robots=True,
        meta_refresh=settings.getfloat("METAREFRESH_MAXDELAY"),
        agent="scrapy",
    )


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("CONCURRENT_REQUESTS", 0),
        ("CONCURRENT_REQUESTS", "many"),
        ("CONCURRENT_REQUESTS_PER_DOMAIN", "0"),
        ("DOWNLOAD_DELAY", "nan"),
        ("DOWNLOAD_DELAY", -1),
    ],
)
def test_a_crawl_that_could_not_fetch_does_not_begin(name: str, written: object) -> None:
    settings = Settings({name: written})
    with pytest.raises(UserError, match=f"setting {name} must be a .*number"):
        read_config(settings, {"topic": "/A"})


def test_a_plan_is_told_by_names_that_can_be_written() -> None:
    said = CrawlConfig(topic="/A", delay=2.0, concurrency=4, options={"batch": 5}).describe()
    assert said == (
        "topic=/A, FOCUSCRAWL_STRATEGY_OPTIONS={'batch': 5}, DOWNLOAD_DELAY=2.0, "
        "CONCURRENT_REQUESTS=4"
    )


def test_an_apprentice_is_for_the_strategy_of_its_name() -> None:
    with pytest.raises(UserError, match="does not work with the strategy"):
        read_config(Settings(), {"apprentice": "x", "strategy": "best-first"})


def test_a_replay_needs_no_network_and_no_patience() -> None:
    settings = Settings({"DOWNLOAD_DELAY": 2.0, "FOCUSCRAWL_WEB": "demo"})
    config = read_config(settings)
    assert (config.web, config.per_host, config.delay) == ("demo", 1, 0.0)
    assert settings["DOWNLOAD_HANDLERS"]["https"].endswith("ReplayDownloadHandler")
    assert settings["DOWNLOAD_HANDLERS"]["file"] is None


def test_choices_are_those_of_the_distiller() -> None:
    assert accepts("distill_sites") == one_of(*SITES).expected


def test_a_reader_says_what_it_accepts() -> None:
    assert TEXT.parse("x", ["a", 1]) == "a,1"
    with pytest.raises(UserError, match=r"^--budget must be a whole number, 0 or more, not 'x'$"):
        whole_number().parse("--budget", "x")


def test_extractors_are_those_that_there_are() -> None:
    assert CrawlConfig().text_extractor == EXTRACTORS[0]
    assert accepts("text_extractor") == one_of(*EXTRACTORS).expected


@pytest.mark.parametrize(
    ("given", "web"),
    [
        ({}, "demo"),
        ({"critic": "models/mine"}, None),
        ({"seeds": "https://a.demo.example/"}, "demo"),
        ({"seeds": "https://www.python.org/"}, None),
        ({"knowledge": "k.db"}, None),
    ],
)
def test_the_critic_of_the_demo_crawls_the_demo_web_where_none_is_named(
    given: dict[str, str], web: str | None
) -> None:
    assert read_config(Settings(), given).web is None
    found = read_config(Settings(), given, may_be_demo=True)
    assert (found.web, found.budget) == (web, DEFAULT_BUDGET if web is None else DEMO_BUDGET)
    assert read_config(Settings(), {**given, "budget": "7"}, may_be_demo=True).budget == 7


def test_values_without_a_crawl_leave_settings_as_they_are() -> None:
    settings = Settings({"FOCUSCRAWL_WEB": "demo", "FOCUSCRAWL_PRIVATE_ADDRESSES": "127.0.0.1"})
    settings.freeze()
    assert str(config_as_written(settings).private_addresses.allowed[0]) == "127.0.0.1/32"
