"""A real `isocost serve` process for tests, and a small client for it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import urllib.parse
from contextlib import contextmanager, suppress
from pathlib import Path

from isocost.examples import compas_rows

ISOCOST = str(Path(sys.executable).with_name("isocost"))


def compas_csv(header=("id", "group", "decile", "label", "score")) -> str:
    """The built-in rows as CSV, under any names of columns."""
    rows = zip(*(compas_rows()[name] for name in compas_rows()), strict=True)
    names = ['"' + name.replace('"', '""') + '"' for name in header]
    return "\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)]) + "\n"


class Served:
    """A running server: its addresses, its temporary folder, and requests to it."""

    def __init__(self, job: subprocess.Popen, temporary: Path) -> None:
        self.job, self.temporary = job, temporary
        self.used = self.new_address()
        self.port = urllib.parse.urlsplit(self.used).port
        status, headers, body = self.open(self.used)
        assert status == 200, body
        self.cookie = headers["Set-Cookie"].partition(";")[0]
        self.place = re.search(rb'url=/([\w-]+)/"', body)[1].decode()
        self.url = f"http://127.0.0.1:{self.port}/{self.place}/"

    def new_address(self):
        """The next address that the server prints, as it does when the last one is used."""
        while line := self.job.stdout.readline():
            if found := re.search(r"http://127\.0\.0\.1:\d+/open/[\w-]+$", line):
                return found[0]
        raise AssertionError(self.job.stderr.read())

    def open(self, address):
        """The answer to a browser that opens an address for the first time."""
        return self.ask("GET", urllib.parse.urlsplit(address).path)

    def ask(self, method, path, body=None, headers=None, host=None):
        """Status, headers and body of the answer to a request without the secret."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            sent = {"Host": host or f"127.0.0.1:{self.port}", **(headers or {})}
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def at(self, method, path, body=None, headers=None, **options):
        """The same with the secret."""
        headers = {"Cookie": self.cookie, **(headers or {})}
        return self.ask(method, f"/{self.place}/{path}", body, headers, **options)

    def raw(self, method, path, *lines):
        """The head of a request with the secret, as bytes; further lines are added."""
        head = [f"{method} /{self.place}/{path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
        head += [f"Cookie: {self.cookie}", *lines]
        return "\r\n".join(head).encode() + b"\r\n\r\n"

    def upload(self, name, body):
        query = urllib.parse.urlencode({"name": name})
        status, _, answer = self.at("POST", f"data?{query}", body)
        return status, json.loads(answer)

    def report(self, file, **wish):
        whole = {"file": file, "score": "score", "label": "label", "group": ["group"], **wish}
        status, _, answer = self.at("POST", "report", json.dumps(whole).encode())
        return status, json.loads(answer)

    def left(self):
        """The files with a name that the server keeps."""
        return [path for path in self.temporary.rglob("*") if path.is_file()]

    def held(self):
        """How many files without a name the server keeps."""
        count = 0
        for descriptor in Path(f"/proc/{self.job.pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                count += str(descriptor.readlink()).startswith(str(self.temporary))
        return count

    def stop(self, sign=signal.SIGINT):
        """Close it as a person does; what it said at the end."""
        self.job.send_signal(sign)
        return self.job.communicate(timeout=20)


@contextmanager
def served(temporary: Path, *arguments, cwd=None, browser=None, program=(ISOCOST,)):
    """A server with a temporary folder of its own, and a browser if given; closed at the end."""
    job = subprocess.Popen(
        [*program, "serve", *([] if browser else ["--no-browser"]), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, "TMPDIR": str(temporary), "BROWSER": browser or "false"},
    )
    try:
        yield Served(job, temporary)
    finally:
        if job.poll() is None:
            job.kill()
        job.wait(timeout=20)
        job.stdout.close()
        job.stderr.close()
