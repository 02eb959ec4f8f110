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
from contextlib import contextmanager
from pathlib import Path

from isocost.examples import compas_rows

ISOCOST = str(Path(sys.executable).with_name("isocost"))


def compas_csv(header=("id", "group", "decile", "label", "score")) -> str:
    """The built-in rows as CSV, under any names of columns."""
    rows = zip(*(compas_rows()[name] for name in compas_rows()), strict=True)
    names = ['"' + name.replace('"', '""') + '"' for name in header]
    return "\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)]) + "\n"


class Served:
    """A running server: its address, its temporary folder, and requests to it."""

    def __init__(self, job: subprocess.Popen, temporary: Path) -> None:
        self.job, self.temporary = job, temporary
        line = job.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/([\w-]+)/", line)
        assert found, f"{line!r} {job.stderr.read() if job.poll() is not None else ''}"
        self.url, self.port, self.token = found[0], int(found[1]), found[2]

    def ask(self, method, path, body=None, headers=None, host=None):
        """Status, headers and body of the answer to a request below the secret address."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            sent = {"Host": host or f"127.0.0.1:{self.port}", **(headers or {})}
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def at(self, method, path, body=None, **options):
        return self.ask(method, f"/{self.token}/{path}", body, **options)

    def upload(self, name, body):
        query = urllib.parse.urlencode({"name": name})
        status, _, answer = self.at("POST", f"data?{query}", body)
        return status, json.loads(answer)

    def report(self, file, **wish):
        whole = {"file": file, "score": "score", "label": "label", "group": ["group"], **wish}
        status, _, answer = self.at("POST", "report", json.dumps(whole).encode())
        return status, json.loads(answer)

    def left(self):
        """The files that the server keeps."""
        return [path for path in self.temporary.rglob("*") if path.is_file()]

    def stop(self, sign=signal.SIGINT):
        """Close it as a person does; what it said at the end."""
        self.job.send_signal(sign)
        return self.job.communicate(timeout=20)


@contextmanager
def served(temporary: Path, *arguments, cwd=None, browser=None):
    """A server with a temporary folder of its own, and a browser if given; closed at the end."""
    job = subprocess.Popen(
        [ISOCOST, "serve", *([] if browser else ["--no-browser"]), *map(str, arguments)],
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
