"""Builds the egg that ``scrapyd-deploy`` uploads; for pip there is pyproject.toml."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["focuscrawl", "focuscrawl.*"]), "focuscrawl.models"],
    package_dir={"focuscrawl.models": "models"},
    # the critics of this folder travel with the code: a server has no other way to them
    package_data={
        "": ["*.css", "*.j2", "py.typed"],
        "focuscrawl.models": ["*/*"],
        "focuscrawl.studio": ["static/*", "templates/*"],
    },
    zip_safe=True,
)
