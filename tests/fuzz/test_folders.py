"""A few of the folders that ``make fuzz FUZZ=folders`` gives away by the hundred."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from longer import long

from .folders import World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"))
    yield made
    made.close()


@pytest.mark.parametrize("seed", [0, *long(*range(1, 6))])
def test_no_command_does_what_a_folder_says(world: World, seed: int) -> None:
    world.try_commands(seed, most=6)


@pytest.mark.parametrize("first", [0, *long(2)])
def test_no_studio_does_what_a_folder_says(world: World, first: int) -> None:
    world.try_studio(range(first, first + 2))
