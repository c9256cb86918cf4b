"""What settings may be, and what is said of those that cannot."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import pytest
from scrapy.settings import Settings

from focuscrawl.crawl import CrawlPlan
from focuscrawl.crawl.distilling import SITES
from focuscrawl.engine import settings_table as table
from focuscrawl.engine.plan_from_settings import plan_from
from focuscrawl.engine.settings_table import (
    ARGUMENTS,
    SETTINGS,
    Setting,
    check_settings,
    read_arguments,
)
from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import TEXT, one_of, whole_number
from focuscrawl.text import EXTRACTORS


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=lambda setting: setting.key)
def test_a_default_is_the_value_of_a_setting_that_is_not_set(setting: Setting[Any]) -> None:
    assert setting.of(Settings()) == setting.default
    assert setting.of(Settings({setting.name: None})) == setting.default


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=lambda setting: setting.key)
def test_a_default_is_that_of_the_plan(setting: Setting[Any]) -> None:
    by_name = {field.name: field.default for field in fields(CrawlPlan)}
    if by_name.get(setting.key, MISSING) is MISSING:
        return
    if setting in (table.META_REFRESH, table.OBEY_META_ROBOTS):  # it depends on the web
        plan = plan_from(Settings(), read_arguments(Settings(), {"web": "demo"}))
        assert getattr(plan, setting.key) == by_name[setting.key]
    else:
        assert setting.default == by_name[setting.key]


@pytest.mark.parametrize(
    ("setting", "written", "value"),
    [
        (table.LIMITS, "0", False),
        (table.LIMITS, 0, False),
        (table.LIMITS, "False", False),
        (table.LIMITS, "1", True),
        (table.LIMITS, True, True),
        (table.CALIBRATED, "0", False),
        (table.BUDGET, " 12 ", 12),
        (table.BUDGET, "", 1000),
        (table.TOPIC, ["/A", "/B"], "/A,/B"),
        (table.CALLBACK, "", ""),
        (table.BACKOFF, "1.5", 1.5),
        (table.META, '{"a": [1]}', {"a": [1]}),
        (table.META, {"a": 1}, {"a": 1}),
        (table.META, {"a": {1}}, {"a": {1}}),
        (table.WARC, "1", "pages.warc.gz"),
        (table.WARC, True, "pages.warc.gz"),
        (table.WARC, "0", None),
        (table.WARC, "", None),
        (table.WARC, "x.warc.gz", "x.warc.gz"),
        (table.DISTILL_SITES, "none", "none"),
    ],
)
def test_values(setting: Setting[Any], written: object, value: object) -> None:
    assert setting.of(Settings({setting.name: written})) == value


@pytest.mark.parametrize("written", ["127.0.0.1, ::1", ["127.0.0.1", "::1"], ("127.0.0.1", "::1")])
def test_addresses(written: object) -> None:
    opened = table.PRIVATE_ADDRESSES.of(Settings({"FOCUSCRAWL_PRIVATE_ADDRESSES": written}))
    assert [str(each) for each in opened.opened] == ["127.0.0.1/32", "::1/128"]


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
        check_settings(Settings({f"FOCUSCRAWL_{name}": written}))
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
    with pytest.raises(UserError, match=f"no setting {name}: do you mean {nearest}"):
        check_settings(settings)


def test_settings_of_others_are_none_of_our_business() -> None:
    check_settings(Settings({"FOCUSCRAWLER": 1, "CLUBS_WAITS": 1, "BUDGET": "x"}))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"buget": "5"}, "unknown argument buget: there are topic, .*budget"),
        ({"web": " "}, "argument web is empty"),
        ({"budget": "abc"}, "^budget must be a whole number, 0 or more, not 'abc'"),
        ({"random_state": "-1"}, "^random_state must be a whole number"),
    ],
)
def test_arguments_that_cannot_be(given: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_arguments(Settings(), given)


def test_an_argument_overrides_its_setting() -> None:
    settings = Settings({"FOCUSCRAWL_BUDGET": 5, "FOCUSCRAWL_TOPIC": "/A"})
    arguments = read_arguments(settings, {"budget": "7"})
    assert (arguments["budget"], arguments["topic"]) == (7, "/A")
    assert list(arguments) == list(ARGUMENTS)


def test_a_plan_is_made_of_both() -> None:
    settings = Settings({"FOCUSCRAWL_LIMITS": "0", "CONCURRENT_REQUESTS_PER_DOMAIN": 3})
    settings.set("FOCUSCRAWL_STRATEGY_OPTIONS", '{"batch": 5}')
    given = {"topic": "/A", "apprentice": "models/apprentice", "budget": "9"}
    plan = plan_from(settings, read_arguments(settings, given))
    assert plan == CrawlPlan(
        topic="/A",
        budget=9,
        limits=False,
        options={"batch": 5, "begin_with": "models/apprentice"},
        per_host=3,
        delay=settings.getfloat("DOWNLOAD_DELAY"),
        concurrency=settings.getint("CONCURRENT_REQUESTS"),
        obey_meta_robots=True,
        meta_refresh=settings.getfloat("METAREFRESH_MAXDELAY"),
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
        plan_from(settings, read_arguments(settings, {"topic": "/A"}))


def test_a_plan_is_told_by_names_that_can_be_written() -> None:
    said = CrawlPlan(topic="/A", delay=2.0, concurrency=4, options={"batch": 5}).describe()
    assert said == (
        "topic=/A, FOCUSCRAWL_STRATEGY_OPTIONS={'batch': 5}, DOWNLOAD_DELAY=2.0, "
        "CONCURRENT_REQUESTS=4"
    )


def test_an_apprentice_is_for_the_strategy_of_its_name() -> None:
    arguments = read_arguments(Settings(), {"apprentice": "x", "strategy": "best-first"})
    with pytest.raises(UserError, match="goes with the strategy apprentice"):
        plan_from(Settings(), arguments)


def test_a_replay_needs_no_network_and_no_patience() -> None:
    settings = Settings({"DOWNLOAD_DELAY": 2.0, "FOCUSCRAWL_WEB": "demo"})
    plan = plan_from(settings, read_arguments(settings))
    assert (plan.web, plan.per_host, plan.delay) == ("demo", 1, 0.0)
    assert settings["DOWNLOAD_HANDLERS"]["https"].endswith("ReplayDownloadHandler")
    assert settings["DOWNLOAD_HANDLERS"]["file"] is None


def test_choices_are_those_of_the_distiller() -> None:
    assert table.DISTILL_SITES.reader.accepts == one_of(*SITES).accepts


def test_a_reader_says_what_it_accepts() -> None:
    assert TEXT.read("x", ["a", 1]) == "a,1"
    with pytest.raises(UserError, match=r"^--budget must be a whole number, 0 or more, not 'x'$"):
        whole_number().read("--budget", "x")


def test_extractors_are_those_that_there_are() -> None:
    setting = table.TEXT_EXTRACTOR
    assert setting.default == EXTRACTORS[0]
    assert [setting.of(Settings({setting.name: each})) for each in EXTRACTORS] == [*EXTRACTORS]
