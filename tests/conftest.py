"""Data that the tests share: the three tallies, and random populations."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import sys
import warnings
from dataclasses import replace
from importlib.metadata import requires, version
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import isocost as ic
from isocost.rules import Row, moved

hypothesis.settings.register_profile(
    "isocost",
    deadline=None,
    max_examples=60,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=True,
)
hypothesis.settings.load_profile("isocost")

# A background job ignores Ctrl-C, and so would the processes that tests start and stop.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

DATA = Path(__file__).parent / "data"

TOGETHER = {
    "spark": "everywhere spark values warehouses",
    "browser": "copying page pictures serve",
}
"""Files of tests that share what is slow to start: one worker runs all of them."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    names = {f"test_{name}": scope for scope in TOGETHER for name in TOGETHER[scope].split()}

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            scope = super()._split_scope(nodeid)
            return names.get(Path(scope).stem, scope)

    return Scheduling(config, log) if config.getoption("dist") == "loadscope" else None


OLD_WEIGHT_CHECK = (
    "the check gives both of its fits other labels, by the first row of each"
    if tuple(int(part) for part in version("scikit-learn").split(".")[:2]) < (1, 7)
    else None
)
"""Why scikit-learn's check of weights fails before 1.7, or None."""


def income_flipped():
    """The paper's income experiment: label and score 1 - x, from the tally of the file."""
    tally = ic.Tally.load(DATA / "income.json")
    mirrored = moved(tally.cells, Row(0, 0.0, 1.0, "mirror", None, 1.0), tally.grid)
    flipped = replace(mirrored, label=1 - mirrored.label)
    return ic.Tally.build(tally.grid, tally.groups, flipped)


SCORED = ("income", "health", "criminal_recidivism")


@pytest.fixture(params=SCORED)
def scored_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def scored(scored_name: str) -> ic.Tally:
    return ic.Tally.load(DATA / f"{scored_name}.json")


@pytest.fixture
def command(capsys):
    """A function that runs a command in this process: exit code, output and error stream."""
    from isocost.cli.app import main

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main(list(map(str, arguments)))
        return left.value.code, *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def scored_folder() -> Path:
    folder = Path(os.environ.get("ISOCOST_DATA", "")) / "scored"
    if "ISOCOST_DATA" not in os.environ or not folder.is_dir():
        pytest.skip("set ISOCOST_DATA to a folder with scored/income.csv and the other two files")
    return folder


@pytest.fixture(scope="session")
def spark():
    """One Spark session for all tests: two cores, and four attempts for each task."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Spark needs Java, and there is none")
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if _has_connect():
        settings["spark.plugins"] = "org.apache.spark.sql.connect.SparkConnectPlugin"
        settings["spark.connect.grpc.binding.address"] = "127.0.0.1"
        settings["spark.connect.grpc.binding.port"] = str(free_port())
    with warnings.catch_warnings():
        # Older releases of Polars warn of every fork, also of the one that starts Java.
        warnings.filterwarnings("ignore", "Using fork", RuntimeWarning)
        session = SparkSession.builder.master("local[2,4]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def spark_connect(spark):
    """The same Spark through its server, as a client far away sees it."""
    if not _has_connect():
        pytest.skip("Spark Connect needs Spark 4.0 and grpcio: pip install 'pyspark[connect]>=4'")
    from pyspark.sql.connect.session import SparkSession

    port = spark.conf.get("spark.connect.grpc.binding.port")
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    yield session
    session.client.close()


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _has_connect() -> bool:
    names = ["grpc", "grpc_status", "google.rpc", "pandas"]
    # Before 4.0 the server is a package of its own.
    package = Path(importlib.util.find_spec("pyspark").origin).parent
    if not list(package.glob("jars/spark-connect*.jar")):
        return False
    # Spark wants it from 4.1 on.
    if any(line.startswith("zstandard") for line in requires("pyspark") or ()):
        names.append("zstandard")
    try:
        return all(importlib.util.find_spec(name) for name in names)
    except ModuleNotFoundError:
        return False


def _score() -> st.SearchStrategy[float]:
    grid = st.integers(0, 16).map(lambda i: i / 16)
    return st.one_of(grid, st.floats(0, 1), st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 1.0]))


@st.composite
def populations(draw, groups=(2, 4), rows=(2, 25), weighted=None):
    """Rows in which every group has positives and negatives, as a dict of arrays."""
    columns = {"score": [], "label": [], "group": [], "weight": []}
    weighted = draw(st.booleans()) if weighted is None else weighted
    for name in "abcdefghij"[: draw(st.integers(*groups))]:
        size = draw(st.integers(*rows))
        labels = [0, 1, *draw(st.lists(st.integers(0, 1), min_size=size - 2, max_size=size - 2))]
        columns["label"] += labels
        columns["score"] += draw(st.lists(_score(), min_size=size, max_size=size))
        columns["group"] += [name] * size
        heavy = st.floats(0.1, 10) if weighted else st.just(1.0)
        columns["weight"] += draw(st.lists(heavy, min_size=size, max_size=size))
    return {name: np.array(values) for name, values in columns.items()}


def counted(data, **options) -> ic.Tally:
    return ic.tally(data, weight="weight", **options)


def measured(*arguments, **options) -> ic.Audit:
    """An audit without intervals: quick, and without a warning where data are few."""
    return ic.audit(*arguments, confidence=None, **options)


def sample(rows=20_000, groups=2, seed=0, weighted=False):
    """A large simulated sample with roughly calibrated scores, ids included."""
    random = np.random.default_rng(seed)
    group = random.integers(0, groups, rows)
    score = random.beta(1.5 + group / groups, 2.5, rows)
    label = (random.random(rows) < score).astype(int)
    data = {"id": np.arange(rows), "group": group, "score": score, "label": label}
    if weighted:
        data["weight"] = random.gamma(2.0, 1.0, rows) + 0.05
    return data
