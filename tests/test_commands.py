"""Every command that is printed runs: from look, audit, compare, fit, plan and the page."""

import html
import json
import re
import shlex
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import isocost as ic
from isocost.readings import Command, Reading, command_line
from tests import processes
from tests.test_scripts import bundle
from tests.test_scripts import run as run_script

TOKEN = (
    r"--(?:method|cost|tolerance|threshold|detect|confidence|remakes) [^\s();,]+|-o [^\s();,]+"
    r"|--[a-z-]+(?:='[^']*'|=[^\s'();]+)?|'[^']*'|[\w./-]+\.csv"
)
PRINTED = re.compile(rf"isocost (?:audit|fit|plan|recalibrate)(?: (?:{TOKEN}))*")


def commands_in(text):
    """The commands in a text, as a reader would copy them; none is overlooked."""
    found = PRINTED.findall(text)
    named = re.findall(r"isocost [a-z]+", text)
    assert len(found) == len(named), named
    return found


def written(folder, kind):
    """A file as Excel writes it: words, percents, decimal commas, weights, what is missing."""
    rng = np.random.default_rng(7)
    shapes = {
        "different": {"North": (4, 4, 900), "South": (2, 5, 900), "West wing": (3, 4, 700)},
        "alike": {"North": (2, 4, 150), "South": (2, 4, 150), "West wing": (2, 4, 150)},
        "off": {"North": (2, 3, 900), "South": (2, 3, 900), "West wing": (2, 3, 900)},
        "few": {"North": (2, 3, 20), "South": (2, 3, 20), "West wing": (2, 3, 20)},
    }[kind]
    lines = ["Nummer;Readmission risk (%);Returned;Ward;weight"]
    for ward, (a, b, n) in {**shapes, "": (2, 3, 50), "Tiny": (2, 3, 6), "Wee": (2, 3, 4)}.items():
        scores = rng.beta(a, b, n)
        chance = scores * 0.6 if kind == "off" and ward == "North" else scores
        for score, chosen in zip(scores, rng.random(n) < chance, strict=True):
            weight = f"{rng.choice([0.5, 1.0, 1.5]):.1f}".replace(".", ",")
            percent = f"{100 * score:.2f}".replace(".", ",")
            lines.append(f"{len(lines)};{percent};{'yes' if chosen else 'no'};{ward};{weight}")
    path = folder / "our data.csv"
    path.write_text("\r\n".join(lines), encoding="cp1252")
    return path


def check_all(commands, path, folder):
    """Run each command in a folder of its own, with the file beside it."""
    assert commands
    for place, command in enumerate(dict.fromkeys(commands)):
        alone = folder / f"run{place}"
        alone.mkdir()
        (alone / path.name).write_bytes(path.read_bytes())
        program, *words = shlex.split(command)
        assert program == "isocost"
        # The rule is made again less often, which takes most of the time.
        less = ["--remakes", "20"] if words[0] == "fit" else []
        done = processes.run(*words, *less, cwd=alone)
        assert done.returncode in (0, 1), (command, done.stderr)
        assert "must name" not in done.stderr


GROUPS = {
    "named": ["--missing-group", "not known"],
    "dropped": ["--drop-missing"],
    "left out": ["--drop-missing", "--drop-group", "Tiny", "--drop-group", "Wee"],
    "merged": ["--missing-group", "not known", "--merge-groups", "Tiny,Wee=others, small"],
    "both": ["--drop-missing", "--merge-groups", "Tiny,North=North", "--drop-group", "Wee"],
}


@pytest.mark.parametrize("kind", ["different", "alike", "off", "few"])
def test_the_command_of_look_runs_and_so_do_those_that_it_prints(tmp_path, kind):
    path = written(tmp_path, kind)
    looked = processes.run("look", path.name, cwd=tmp_path)
    (command,) = commands_in(looked.stdout)
    assert "--missing-group=unknown" in command
    done = processes.run(*shlex.split(command)[1:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    check_all(commands_in(done.stdout), path, tmp_path)


@pytest.mark.parametrize("groups", GROUPS)
def test_the_commands_of_an_audit_run(tmp_path, groups):
    path = written(tmp_path, "different")
    # The label and its positive value are guessed, and so are columns with other names.
    options = ["--scale", "percent", "--weight", "weight", *GROUPS[groups]]
    done = processes.run("audit", path.name, *options, "--cost", "fpr", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "positive: 'yes'" in done.stderr
    commands = commands_in(done.stdout)
    assert all("--positive=yes" in command for command in commands)
    check_all(commands, path, tmp_path)
    # No line ends within a command.
    assert len(PRINTED.findall(done.stdout)) == done.stdout.count("isocost ")


@pytest.mark.parametrize("kind", ["alike", "off"])
@pytest.mark.parametrize("groups", ["left out", "both"])
def test_the_commands_of_compare_fit_and_plan_run(tmp_path, kind, groups):
    path = written(tmp_path, kind)
    options = ["--scale", "percent", "--weight", "weight", "--cost", "fpr", *GROUPS[groups]]
    printed = ""
    for command, *more in (
        ["compare", "--remakes", "10"],
        ["fit", "--method", "withhold", "--remakes", "10", "-o", "x.json"],
        ["plan"],
    ):
        done = processes.run(command, path.name, *options, *more, cwd=tmp_path)
        assert done.returncode in (0, 1), done.stderr
        printed += done.stdout + done.stderr.replace("isocost: ", "")
    commands = commands_in(printed)
    # The question stays the same.
    assert all("--cost fpr" in one for one in commands if one.startswith("isocost plan"))
    check_all(commands, path, tmp_path)


@pytest.mark.parametrize("groups", ["named", "left out", "both"])
def test_the_commands_of_the_page_run(tmp_path, groups):
    path = written(tmp_path, "different")
    options = ["--scale", "percent", "--weight", "weight", *GROUPS[groups]]
    page = ["report", path.name, *options, "--cost", "fpr", "-o", "page.html", "--replicates", "0"]
    done = processes.run(*page, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "page.html").read_text()
    codes = re.findall(r'<code data-windows="([^"]*)">(.*?)</code>', text)
    how = [html.unescape(posix) for _, posix in codes]
    assert all('--score="Readmission risk (%)"' in html.unescape(one) for one, _ in codes)
    held = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL).group(1))
    asked = [
        {"command": "audit", "cost": {"kind": "fpr"}, "off": [0]},
        {"command": "fit", "cost": {"kind": "fpr"}, "method": "withhold", "tolerance": 0.2},
        {"command": "fit", "cost": {"kind": "fpr"}, "method": "odds", "goal": "rates", "off": [1]},
    ]
    script = bundle() + (
        f"\nconst prepared = {json.dumps(held['commands']['posix'])};"
        f"\nconst asked = {json.dumps(asked)};"
        "\nconsole.log(JSON.stringify(asked.map((one) => commandLine(one, prepared))));"
    )
    copied = run_script(script)
    assert f"--drop-group={command_line([held['tally']['names'][0]])}" in copied[0]
    check_all([*how, *copied], path, tmp_path)


def test_a_tally_made_without_groups_can_be_named_in_commands(tmp_path):
    path = written(tmp_path, "different")
    options = ["--scale", "percent", "--weight", "weight", *GROUPS["both"]]
    done = processes.run("tally", path.name, *options, "-o", "t.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = processes.run("audit", "t.json", "--cost", "fpr", cwd=tmp_path)
    lines = re.findall(r"isocost (?:fit|recalibrate) t\.json.*?-o \w+\.json", done.stdout)
    assert lines
    for line in lines:
        words = shlex.split(line)[1:]
        more = ["--remakes", "20"] if words[0] == "fit" else []
        made = processes.run(*words, *more, cwd=tmp_path)
        assert made.returncode in (0, 1), made.stderr


HOSTILE = [
    "$(touch x)", "`id`", "a'b\"c", "; rm -rf /", "--score=x", "", "~", "*", "a\\nb", "!!",
    "\u202eabc", "new\nline", "tab\there", "\x1b[201~id", "é😀", "שלום",
    "a b", "#x", "\u00a0", "'\n\\'", "--group=a b'c",
]  # fmt: skip


def test_a_shell_reads_every_word_back_as_it_was():
    line = command_line(HOSTILE, "posix")
    script = ["bash", "-c", f"printf '%s\\0' {line}"]
    env = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(script, capture_output=True, check=True, env=env)
    assert done.stdout.decode().split("\0")[:-1] == HOSTILE
    assert line.isprintable()


def arguments_of(line):
    """The words that a program of Windows reads: rules of its C library since 2008."""
    words, word, place, quoted, begun = [], "", 0, False, False
    while place < len(line):
        slashes = re.match(r"\\*", line[place:])[0]
        place += len(slashes)
        letter = line[place : place + 1]
        if letter == '"':
            word += "\\" * (len(slashes) // 2)
            begun = True
            if len(slashes) % 2:
                word += '"'
            elif quoted and line[place + 1 : place + 2] == '"':
                word, place = word + '"', place + 1
            else:
                quoted = not quoted
        else:
            word += slashes
            if letter in " \t" and not quoted:
                words, word, begun = [*words, word] if word or begun else words, "", False
            else:
                word += letter
        place += 1
    return [*words, word] if word or begun else words


def test_windows_reads_every_word_back_as_it_was():
    words = [word for word in HOSTILE if word.isprintable()]
    words += [
        'a" & calc & "',
        "C:\\my data\\",
        'x\\"y',
        "50 %",
        "a^b",
        "a&b|c>d",
        "\\\\server\\a b",
    ]
    line = command_line(words, "windows")
    assert arguments_of(line) == words
    # For cmd every sign with a meaning lies between quotes: outside of them there are only words.
    outside = "".join(line.split('"')[::2])
    assert not set(outside) & set("&|<>^()%!")


def test_words_are_written_for_the_system(monkeypatch):
    command = Reading({"score": "my risk"}, positive="it's").command("audit", ["-x.csv"])
    assert command.posix == r"isocost audit ./-x.csv --score='my risk' --positive='it'\''s'"
    assert command.windows == 'isocost audit ./-x.csv --score="my risk" --positive="it\'s"'
    assert str(command) == command.posix
    monkeypatch.setattr("sys.platform", "win32")
    assert str(command) == command.windows
    assert Command(("isocost", "50%")).windows == 'isocost "50%"'


def test_a_reading_says_what_was_done_to_groups():
    rows = {"score": [0.2, 0.7] * 6, "label": [0, 1] * 6, "group": list("aabbccddeeff")}
    tally = ic.tally(rows, missing_group="?", positive=1)
    changed = tally.drop(["a"]).relabel({"b": "x", "c": "x"}).relabel({"x": "y", "d": "y"})
    changed = changed.select(["y", "e"])
    assert changed.reading.dropped_groups == ("a", "f")
    assert changed.reading.merged_groups == {"y": ("b", "c", "d")}
    assert changed.reading.options() == [
        "--positive=1", "--missing-group=?", "--merge-groups=b,c,d=y", "--drop-group=a",
        "--drop-group=f",
    ]  # fmt: skip
    assert ic.Tally.from_json(changed.to_json()).reading == changed.reading
    rule = ic.equalize_odds(changed)
    assert ic.Rule.from_json(rule.to_json()).reading == changed.reading
    twice = (changed + changed).reading
    assert twice == replace(changed.reading, read_rows=24)
