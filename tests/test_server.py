"""isocost serve as a browser, and as a hostile page, would speak to it: a real server each time."""

import gzip
import http.client
import io
import json
import signal
import socket
import subprocess
import sys
import time
from html import unescape

import duckdb
import pandas as pd
import pytest

from isocost.cli.commands import bytes_of
from isocost.errors import FileError, MissingDependencyError, UsageError
from isocost.examples import compas_rows
from isocost.page import server
from isocost.page.server import ReportRequest, Session
from tests.serving import ISOCOST, compas_csv, served
from tests.test_paths import FAR, with_sheet, workbook

pytest.importorskip("uvicorn", reason="isocost serve needs the extra serve")
pytest.importorskip("starlette", reason="isocost serve needs the extra serve")

LIMIT = 1_000_000


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with served(tmp_path_factory.mktemp("temporary"), "--max-size", LIMIT) as one:
        yield one


def test_the_page_and_its_headers(running):
    status, headers, body = running.at("GET", "")
    assert status == 200
    assert b"<title>isocost" in body
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"
    for name, kind in (("serve.css", "text/css"), ("serve.js", "text/javascript")):
        status, headers, _ = running.at("GET", name)
        assert status == 200
        assert headers["Content-Type"].startswith(kind)


def test_it_listens_on_loopback_only(running):
    with socket.socket() as other:
        other.settimeout(2)
        # Any other address of 127/8 is this machine as well, but not where it listens.
        assert other.connect_ex(("127.0.0.2", running.port)) != 0


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "[::1]:80"])
def test_other_hosts_are_refused(running, host):
    status, _, body = running.at("GET", "", host=host.format(port=running.port))
    assert status == 421
    assert b"<title>" not in body


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", ""])
def test_other_origins_are_refused(running, origin):
    before = running.left()
    for path in ("data?name=a.csv", "report"):
        status, headers, _ = running.at("POST", path, b"x", headers={"Origin": origin})
        assert status == 403
        assert "Access-Control-Allow-Origin" not in headers
    assert running.left() == before
    mine = {"Origin": running.url[: running.url.index("/", 8)]}
    assert running.at("GET", "data", headers=mine)[0] == 200


def test_nothing_without_the_secret(running):
    place, cookie = running.place, {"Cookie": running.cookie}
    near = (f"/{place[:-1]}/", f"/{place}x/", "/%C3%A9/", "/open")
    for path in ("/", "/data", "/serve.js", *near):
        status, _, body = running.ask("GET", path, headers=cookie)
        assert status == 404
        assert place.encode() not in body
    assert running.ask("POST", "/data?name=a.csv", b"a", headers=cookie)[0] == 404
    assert running.ask("GET", f"/open/{place}", headers=cookie)[0] == 403
    assert running.ask("OPTIONS", "*")[0] == 404


def test_nothing_without_the_cookie(running):
    name, _, value = running.cookie.partition("=")
    others = [{}] + [
        {"Cookie": one}
        for one in ("isocost=", f"other={value}", f"{name}={value}x", f"{name}={value[:-1]}")
    ]
    for headers in others:
        for method, path in (("GET", ""), ("GET", "data"), ("POST", "data?name=a.csv")):
            status, _, body = running.ask(method, f"/{running.place}/{path}", headers=headers)
            assert status == 404, headers
            assert b"open the last address that isocost serve printed" in body
    # A server at another port may set a cookie of the same name; browsers do not tell them apart.
    both = {"Cookie": f"{name}=other; {running.cookie}; more=1"}
    assert running.ask("GET", f"/{running.place}/data", headers=both)[0] == 200


def test_an_address_works_once(running):
    address = running.new_address()
    path = address[address.index("/open/") :]
    # Programs that look where a link leads do not use it up; nor does another host.
    assert running.ask("HEAD", path)[0] == 403
    assert running.ask("POST", path)[0] == 405
    assert running.ask("GET", path, host="evil.example")[0] == 421
    assert running.ask("GET", path, headers={"Origin": "http://evil.example"})[0] == 403
    status, headers, _ = running.open(address)
    assert status == 200
    cookie, *attributes = headers["Set-Cookie"].split("; ")
    assert cookie == running.cookie
    assert {one.lower() for one in attributes} == {
        "httponly", "samesite=strict", f"path=/{running.place}/".lower()
    }  # fmt: skip
    assert headers["Cache-Control"] == "no-store"
    for used in (address, running.used, f"{address[:-1]}x"):
        status, headers, body = running.open(used)
        assert status == 403
        assert "Set-Cookie" not in headers
        assert running.place.encode() not in body
        assert b"The terminal in which <code>isocost serve</code> runs shows a new one" in body


@pytest.mark.parametrize("name", ["Host", "Origin"])
def test_two_headers_of_a_kind_are_refused(running, name):
    mine = {"Host": f"127.0.0.1:{running.port}", "Origin": f"http://127.0.0.1:{running.port}"}
    for second in (mine[name], "evil.example"):
        first = [f"Origin: {mine['Origin']}"] if name == "Origin" else []
        status = answered(running, running.raw("GET", "data", *first, f"{name}: {second}"))
        assert status == 400
    assert answered(running, running.raw("GET", "data", f"Origin: {mine['Origin']}")) == 200


def answered(running, request):
    """The status of the answer to bytes as they are."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as plain:
        plain.sendall(request)
        return int(plain.recv(100).split()[1])


def test_a_report_from_an_uploaded_file(running):
    status, answer = running.upload("compas.csv", compas_csv().encode())
    assert status == 200
    file = answer["file"]
    assert file["name"] == "compas.csv"
    assert file["guess"] == {"score": "score", "label": "label", "group": "group", "weight": None}
    assert running.held() == 1
    assert running.left() == []
    status, answer = running.report(file["id"], cost="fpr", threshold=0.45)
    assert status == 200, answer
    status, headers, page = running.at("GET", answer["report"])
    assert status == 200
    assert "sandbox" in headers["Content-Security-Policy"]
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    text = page.decode()
    assert "compas.csv" in text
    assert "African-American" in text
    assert "0.45" in text
    assert running.held() == 0
    status, headers, same = running.at("GET", f"{answer['report']}?download")
    assert headers["Content-Disposition"] == 'attachment; filename="report.html"'
    assert same == page


def test_a_file_is_gone_after_its_report(running):
    _, answer = running.upload("a.csv", compas_csv().encode())
    assert running.report(answer["file"]["id"])[0] == 200
    status, told = running.report(answer["file"]["id"])
    assert status == 422
    assert told["problems"][0]["next_step"] == "choose the file again"
    assert running.at("GET", "report/0123456789abcdef.html")[0] == 422


def test_an_uploaded_file_that_is_read_in_another_way_is_still_there(running):
    _, answer = running.upload("a.csv", compas_csv().encode())
    assert running.at("POST", "look?encoding=latin-1")[0] == 200
    assert running.report(answer["file"]["id"])[0] == 200
    assert running.held() == 0


def test_a_wrong_choice_keeps_the_file_for_another(running):
    _, answer = running.upload("a.csv", compas_csv().encode())
    file = answer["file"]["id"]
    status, told = running.report(file, score="scor")
    assert status == 422
    assert told["problems"] == [
        {
            "name": "score",
            "rule": "must name a column of the data",
            "got": "'scor', and the columns are 'id', 'group', 'decile', 'label', 'score'",
            "next_step": "did you mean “Score”: score?",
            "controls": ["score"],
        }
    ]
    assert running.report(file, score="decile")[1]["problems"][0]["name"].startswith("score")
    assert running.report(file, cost="tpr")[1]["problems"][0]["name"] == "cost"
    assert running.report(file, threshold=1.5)[1]["problems"][0]["name"] == "threshold"
    assert running.report(file)[0] == 200


def test_a_new_file_replaces_the_old(running):
    _, first = running.upload("a.csv", compas_csv().encode())
    _, second = running.upload("b.csv", compas_csv().encode())
    assert running.held() == 1
    assert running.report(first["file"]["id"])[0] == 422
    assert running.report(second["file"]["id"])[0] == 200
    assert running.held() == 0


def parquet():
    file = io.BytesIO()
    pd.DataFrame(compas_rows()).to_parquet(file)
    return file.getvalue()


def test_other_kinds_of_files(running):
    for name, body in (
        ("a.parquet", parquet()),
        ("b.tsv", compas_csv().replace(",", "\t").encode()),
        ("c.csv.gz", gzip.compress(compas_csv().encode())),
        ("d.CSV.GZ", gzip.compress(compas_csv().encode())),
        ("e.jsonl", pd.DataFrame(compas_rows()).to_json(orient="records", lines=True).encode()),
    ):
        status, answer = running.upload(name, body)
        assert status == 200, answer
        assert answer["file"]["guess"]["group"] == "group"
        assert running.report(answer["file"]["id"])[0] == 200


@pytest.mark.parametrize(
    ("name", "body", "rule"),
    [
        ("a.parquet", b"PAR1 this is no Parquet PAR1", "must be readable as Parquet"),
        ("a.parquet", parquet()[:-40], "must be readable as Parquet"),
        ("a.csv", b"", "must contain data"),
        ("a.csv.gz", b"not gzip at all", "must be readable as CSV"),
        ("a.exe", b"MZ", "must end in .csv"),
        ("", b"a,b\n1,2\n", "must end in .csv"),
        ("a.csv", b"\xff\xfe\x00\x01" * 50, "must"),
    ],
)
def test_bad_files_are_told_in_four_parts_and_not_kept(running, name, body, rule):
    before = running.held()
    status, answer = running.upload(name, body)
    assert status == 422, answer
    told = answer["problems"][0]
    assert rule in told["rule"]
    assert told.pop("controls") == ["file"]
    assert set(told) == {"name", "rule", "got", "next_step"}
    assert all(told.values())
    for hidden in (str(running.temporary), "/proc"):
        assert hidden not in json.dumps(answer)
    assert running.held() == before


@pytest.mark.parametrize(
    "name", ["../../../evil.csv", "..\\evil.csv", "/etc/passwd.csv", "a\x00b.csv"]
)
def test_names_lead_nowhere(running, name):
    status, answer = running.upload(name, compas_csv().encode())
    assert status == 200
    assert "/" not in answer["file"]["name"]
    assert list(running.temporary.iterdir()) == []


def test_large_files_are_refused_though_they_may_not_say_so(running):
    before = running.held()
    status, answer = running.upload("a.csv", b"a" * (LIMIT + 1))
    assert (status, answer["problems"][0]["rule"]) == (413, "must be at most 1 MB here")
    assert "--max-size" in answer["problems"][0]["next_step"]
    assert running.held() == before
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
    path = f"/{running.place}/data?name=a.csv"
    try:
        headers = {"Transfer-Encoding": "chunked", "Cookie": running.cookie}
        chunks = (b"a" * 100_000 for _ in range(30))
        connection.request("POST", path, chunks, headers, encode_chunked=True)
        assert connection.getresponse().status == 413
    except (BrokenPipeError, ConnectionResetError):
        pass  # it hung up on us before we were through
    finally:
        connection.close()
    wait_until(lambda: running.held() == before)


def half_a_body(running):
    return running.raw("POST", "data?name=a.csv", "Content-Length: 5000") + b"score,label"


def test_a_sender_who_hangs_up_leaves_nothing(running):
    before = running.held()
    with socket.create_connection(("127.0.0.1", running.port)) as rude:
        rude.sendall(half_a_body(running))
        wait_until(lambda: running.held() == before + 1)
    wait_until(lambda: running.held() == before)
    assert running.at("GET", "")[0] == 200


def test_silent_connections_are_closed(tmp_path):
    with served(tmp_path, "--timeout", 0.5) as one:
        whole = one.raw("GET", "data")
        sent = {
            "nothing": b"",
            "half a head": whole[:-2],
            "half a body": half_a_body(one),
            "no secret": half_a_body(one).replace(one.cookie.encode(), b"isocost=none"),
            "half a second head": whole + whole[:-2],
        }
        lines = {name: connected(one, first) for name, first in sent.items()}
        end = time.monotonic() + 10
        for name, line in lines.items():
            assert ended(line, end), name
        wait_until(lambda: one.held() == 0)
        assert one.stop()[1] == ""


def connected(running, first):
    line = socket.create_connection(("127.0.0.1", running.port), timeout=0.1)
    line.sendall(first)
    return line


def ended(line, end, drop=b""):
    """Whether the server closes a connection in time; what it answers before that is skipped."""
    with line:
        while time.monotonic() < end:
            try:
                line.sendall(drop)
                if not line.recv(100_000):
                    return True
            except TimeoutError:
                continue
            except ConnectionError:
                return True
    return False


def test_connections_that_drip_are_closed(tmp_path):
    with served(tmp_path, "--timeout", 0.5) as one:
        refused = half_a_body(one).replace(one.cookie.encode(), b"isocost=none")
        for first in (one.raw("GET", "data")[:-2], half_a_body(one), refused):
            assert ended(connected(one, first), time.monotonic() + 10, b"x")
        assert one.stop()[1] == ""


def test_a_slow_sender_is_waited_for(tmp_path):
    body = compas_csv().encode()
    body += b"1,Caucasian,5,0,0.5\n" * 60_000
    with served(tmp_path, "--timeout", 0.5) as one:
        line = socket.create_connection(("127.0.0.1", one.port), timeout=20)
        line.sendall(one.raw("POST", "data?name=a.csv", f"Content-Length: {len(body)}"))
        begun = time.monotonic()
        for start in range(0, len(body), 100_000):
            line.sendall(body[start : start + 100_000])
            time.sleep(0.15)
        assert time.monotonic() - begun > 3 * 0.5
        assert line.recv(100).split()[1] == b"200"
        line.close()


def wait_until(holds, seconds=10):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("body", "code"),
    [(b"", 422), (b"[]", 422), (b"{", 422), (b'{"file": 1}', 422), (b"[" * 50_000, 422),
     (b"\xff", 422), (b" " * 200_000, 413)],
)  # fmt: skip
def test_requests_that_are_no_wish(running, body, code):
    status, _, answer = running.at("POST", "report", body)
    assert (status, bool(json.loads(answer)["problems"])) == (code, True)


@pytest.mark.parametrize(
    ("field", "value"),
    [("group", []), ("group", [1]), ("threshold", "0.5"), ("threshold", True), ("weight", 3),
     ("tolerance", float("nan")), ("min_count", None), ("cost", ["fpr"])],
)  # fmt: skip
def test_wishes_are_checked(field, value):
    whole = {"file": "1", "score": "s", "label": "y", "group": ["g"], field: value}
    with pytest.raises(UsageError) as error:
        ReportRequest.read(json.dumps(whole).encode())
    assert error.value.problems[0].name == field


def having(folder):
    """A session in which a file is open, and the file."""
    path, session = folder / "data.csv", Session()
    path.write_text(compas_csv())
    session.open(path, "mine.csv")
    return session, path


def test_few_reports_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("isocost.page.server.MAX_REPORTS", 2)
    session, path = having(tmp_path)
    request = ReportRequest(session.file.id, "score", "label", ("group",))
    keys = [session.report(request) for _ in range(3)]
    assert list(session.reports) == keys[1:]
    assert path.exists()


def test_the_page_knows_how_its_file_was_read(tmp_path):
    session, _ = having(tmp_path)
    request = ReportRequest(
        session.file.id, "score", "label", ("group",), positive="1", missing_group="none"
    )
    page = session.reports[session.report(request)].page
    told = '"data":["mine.csv"],"posix":{"read":"mine.csv --positive=1 --missing-group=none"'
    assert told in page.replace('": ', '":').replace(', "', ',"')


def test_data_from_the_command_line_are_at_hand_and_stay(tmp_path):
    (tmp_path / "mine.csv").write_text(compas_csv())
    (tmp_path / "temporary").mkdir()
    with served(tmp_path / "temporary", "mine.csv", cwd=tmp_path) as one:
        state = json.loads(one.at("GET", "data")[2])
        assert state["max_size"] == 200_000_000
        assert state["file"]["name"] == "mine.csv"
        for _ in range(2):
            assert one.report(state["file"]["id"])[0] == 200
    assert (tmp_path / "mine.csv").exists()


def test_the_browser_is_opened_at_the_page(tmp_path):
    script, seen = tmp_path / "browser", tmp_path / "seen"
    script.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}.part && mv {seen}.part {seen}\n')
    script.chmod(0o755)
    with served(tmp_path, browser=f"{script} %s") as one:
        wait_until(seen.exists)
        given = seen.read_text()
        # Anybody on the machine can read it, so it is worth nothing once it has been opened.
        assert one.place not in given
        assert one.cookie.partition("=")[2] not in given
        assert given != one.used
        assert one.open(given)[0] == 200
        assert one.open(given)[0] == 403
        # The one in the terminal is another, for a browser of one's own choice.
        assert one.open(one.new_address())[0] == 200


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_closing_leaves_nothing(tmp_path, sign):
    with served(tmp_path) as one:
        one.upload("a.csv", compas_csv().encode())
        assert one.held() == 1
        # A browser keeps its connection open; that must not hold the server.
        with socket.create_connection(("127.0.0.1", one.port)):
            said, errors = one.stop(sign)
    assert list(tmp_path.iterdir()) == []
    assert errors == ""
    if sign == signal.SIGINT:
        assert one.job.returncode == 0
        assert said.endswith("Closed; nothing was kept.\n")


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_an_upload_does_not_outlive_a_killed_server(tmp_path, name):
    text = compas_csv().encode()
    body = {"csv": text, "gz": gzip.compress(text), "parquet": parquet()}[name.split(".")[-1]]
    with served(tmp_path) as one:
        assert one.upload(name, body)[0] == 200
        assert one.held() == 1
        with connected(one, half_a_body(one)):
            wait_until(lambda: one.held() == 2)
            one.job.kill()
            one.job.wait(timeout=20)
    assert list(tmp_path.rglob("*")) == []


NO_DESCRIPTORS = """
from pathlib import Path
from isocost.cli import main
from isocost.page import server
server.DESCRIPTORS = Path("/nowhere")
main()
"""


def test_without_names_for_descriptors_the_next_start_deletes_what_a_killed_server_left(tmp_path):
    program = (sys.executable, "-c", NO_DESCRIPTORS)
    with served(tmp_path, program=program) as one, served(tmp_path, program=program) as other:
        for server in (one, other):
            status, answer = server.upload("a.csv.gz", gzip.compress(compas_csv().encode()))
            assert status == 200, answer
        one.job.kill()
        one.job.wait(timeout=20)
        assert len(one.left()) == 2
        with served(tmp_path, program=program):
            # That of the server which runs stays.
            assert len(one.left()) == 1
        assert other.report(answer["file"]["id"])[0] == 200
        assert one.left() == []
        other.upload("a.csv", compas_csv().encode())
        other.stop()
    assert list(tmp_path.iterdir()) == []


def test_closing_does_not_wait_for_a_long_report(tmp_path):
    duckdb.sql(
        "COPY (SELECT random() AS score, (random() < 0.5)::INT AS label, 'g' || (range % 2) AS "
        f"\"group\" FROM range(8000000)) TO '{tmp_path}/big.parquet'"
    )
    session = Session()
    session.open(tmp_path / "big.parquet", "big.parquet")
    session.closing = lambda: True
    with pytest.raises(FileError, match="one that is closing"):
        session.report(ReportRequest(session.file.id, "score", "label", ("group",)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.csv"], "file: must exist"),
        (["--max-size", "huge"], "--max-size: must be a size such as 200MB"),
        (["--port", "70000"], "Invalid value for '--port'"),
    ],
)
def test_bad_usage_is_exit_code_2(tmp_path, arguments, message):
    done = subprocess.run(
        [ISOCOST, "serve", "--no-browser", *arguments],
        capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert message in done.stderr


def test_a_port_that_is_taken(running):
    with pytest.raises(UsageError, match="must be free to listen on"):
        server._listening(running.port)


def test_sizes():
    assert bytes_of("1kB") == 1000
    for wrong in ("", "-1MB", "0", "1TB", "1e9"):
        with pytest.raises(UsageError):
            bytes_of(wrong)


def test_without_the_packages_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "isocost\[serve\]"'):
        server.serve()


def test_the_sheets_of_a_workbook_are_offered(running, tmp_path):
    pytest.importorskip("python_calamine", reason="workbooks need the extra excel")
    rows = [["score", "label", "group"], [0.2, 0, "a"], [0.8, 1, "b"]]
    path = workbook(tmp_path / "two.xlsx", {"2024": rows, "2025": rows})
    status, _, body = running.at("POST", "data?name=two.xlsx", path.read_bytes())
    (problem,) = json.loads(body)["problems"]
    assert (status, problem["controls"], problem["choices"]) == (422, ["sheet"], ["2024", "2025"])
    status, _, body = running.at("POST", "data?name=two.xlsx&sheet=2025", path.read_bytes())
    assert (status, json.loads(body)["file"]["reading"]) == (200, {"sheet": "2025"})


def test_files_that_would_take_all_memory_or_time_are_refused(running, tmp_path):
    pytest.importorskip("python_calamine", reason="workbooks need the extra excel")
    far = with_sheet(tmp_path / "far.xlsx", FAR["far cell"]).read_bytes()
    wide = b",".join([b"c"] * 150_000)
    files = {
        "far.xlsx": (far, "must have sheets whose cells span at most 33,554,432 places"),
        "wide.csv": (wide + b"\n" + wide, "must have at most 20,000 columns"),
        "wide.csv.gz": (gzip.compress(wide + b"\n"), "must have at most 20,000 columns"),
        "deep.jsonl": (
            b'{"a":' + b"[" * 10**5 + b"]" * 10**5 + b"}",
            "must be readable as JSON lines",
        ),
    }
    for name, (content, rule) in files.items():
        status, answer = running.upload(name, content)
        assert (status, answer["problems"][0]["rule"]) == (422, rule)
        assert name in answer["problems"][0]["got"]
    assert running.upload("data.csv", compas_csv().encode())[0] == 200


@pytest.mark.parametrize("control", ["handed_over", "drop_missing"])
def test_rows_without_a_score_have_a_control(running, control):
    frame = pd.DataFrame(compas_rows())
    frame.loc[::10, "score"] = None
    if control == "drop_missing":
        frame.loc[:9, "group"] = None
    _, answer = running.upload("holes.csv", frame.to_csv().encode())
    asked = {"file": answer["file"]["id"], "cost": "fpr"}
    status, answer = running.report(**asked)
    assert (status, control.replace("_", "-") in answer["problems"][0]["controls"]) == (422, True)
    if control == "drop_missing":
        assert "“Rows with missing values” drops them" in answer["problems"][1]["next_step"]
    wrong = running.report(**asked, **{control: "yes"})
    assert (wrong[0], wrong[1]["problems"][0]["name"]) == (422, control)
    status, answer = running.report(**asked, **{control: True})
    assert status == 200
    html = unescape(running.at("GET", answer["report"])[2].decode())
    told = {
        "handed_over": "10.0\u00a0% of people were handed over and have no score",
        "drop_missing": "were dropped: 624 in all, 615 without 'score' and 10 without 'group'.",
    }
    assert told[control] in html
