"""The paper's three experiments: whose errors are made equal, and at what cost."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EXPERIMENTS", "HEALTH", "INCOME", "RECIDIVISM", "Experiment"]


@dataclass(frozen=True)
class Experiment:
    """One experiment of Section 5.

    Attributes
    ----------
    name, title : str
        On the command line, and in print.
    figure : str
        The paper's number of its picture.
    cost : str
        What is made equal.
    groups : (str, str)
        G_1 and G_2, as the paper numbers them.
    positive, data : str
        What label 1 means, and where the people come from.
    """

    name: str
    title: str
    figure: str
    cost: str
    groups: tuple[str, str]
    positive: str
    data: str


INCOME = Experiment(
    name="income",
    title="Income prediction",
    figure="3a",
    cost="fnr",
    groups=("women", "men"),
    positive="earns more than $50,000",
    data="Adult (UCI), 48,842 people",
)
HEALTH = Experiment(
    name="health",
    title="Health prediction",
    figure="3b",
    cost="weighted:1,3",
    groups=("middle-aged", "seniors"),
    positive="has a heart condition",
    data="Heart Disease (UCI), 920 people",
)
RECIDIVISM = Experiment(
    name="recidivism",
    title="Recidivism prediction",
    figure="3c",
    cost="fpr",
    groups=("African-American", "Caucasian"),
    positive="charged again within two years",
    data="COMPAS (ProPublica), 6,150 people",
)
EXPERIMENTS = {experiment.name: experiment for experiment in (INCOME, HEALTH, RECIDIVISM)}
