"""Every fault that concerns the review server, by real HTTP requests to a real server in a process of its own."""

from __future__ import annotations

import html
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.reports.hostile import HOSTILE
from tests.review.review_parts import Client, Server, asked, png, serving, start, wav, write_results

from hitmiss.review.guard import POLICY

pytestmark = pytest.mark.extras
pytest.importorskip("starlette", reason="starlette is not installed; make test-extras")
pytest.importorskip("uvicorn", reason="uvicorn is not installed; make test-extras")
FORM = ("Content-Type", "application/x-www-form-urlencoded")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("review")
    write_results(folder / "data", n=8)
    (folder / "secret.png").write_bytes(png())
    (folder / "data" / "hidden.txt").write_text("SECRET-CONTENT")
    return folder


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Server]:
    with serving(place / "data" / "results.jsonl", "--per-item", "4", "--adjudicator", "Zoe") as running:
        yield running


@pytest.fixture
def ann(server: Server) -> Client:
    client = Client(server.port)
    client.sign_in("Ann")
    return client


def count(place: Path) -> int:
    return int(asked(place / "data" / "results.review.sqlite", "SELECT count(*) FROM verdicts")[0][0])


# --- who is asked, from where, how


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost.evil.example:{port}", "127.0.0.1:1",
     "127.0.0.1", "localhost@evil.example:{port}", "10.0.0.5:{port}", "", "[::ffff:127.0.0.1]:{port}", "evil.example#127.0.0.1:{port}"],
)  # fmt: skip
def test_a_foreign_host_is_refused(server: Server, host: str) -> None:
    answer = Client(server.port).get("/", ("Host", host.format(port=server.port)))
    assert answer.status == 400 and not answer.cookies and b"<form" not in answer.body


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"])
def test_its_own_names_are_answered(server: Server, host: str) -> None:
    assert Client(server.port).get("/", ("Host", host.format(port=server.port))).status == 200


def test_two_hosts_or_none_are_refused(server: Server) -> None:
    both = Client(server.port).get("/", ("Host", f"127.0.0.1:{server.port}"), ("Host", "evil.example"))
    assert both.status == 400
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert b" 400 " in raw.makefile("rb").readline()


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"])
def test_only_reading_and_posting(server: Server, method: str) -> None:
    assert Client(server.port).ask(method, "/review").status in (400, 405)


def test_every_answer_has_the_headers(server: Server, ann: Client) -> None:
    key = re.search(r"/media/([\w-]+)", ann.get("/review").text)[1]  # type: ignore[index]
    for path in (
        "/",
        "/review",
        "/progress",
        "/nothing",
        "/assets/review.css",
        "/assets/review.js",
        "/favicon.ico",
        f"/media/{key}",
    ):
        headers = ann.get(path).headers
        assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY", path
        assert (
            "frame-ancestors 'none'" in headers["content-security-policy"]
            and "default-src 'none'" in headers["content-security-policy"]
        )
        assert headers["cross-origin-resource-policy"] == "same-origin" and headers["cache-control"] == "no-store"
        assert "server" not in headers and "access-control-allow-origin" not in headers
    assert ann.get("/review").headers["content-security-policy"] == POLICY and "unsafe" not in POLICY
    assert ann.get(f"/media/{key}").headers["content-security-policy"].endswith("sandbox")
    refused = Client(server.port).get("/", ("Host", "evil.example"))
    assert refused.headers["x-content-type-options"] == "nosniff"


def test_pages_hold_no_inline_script_or_style_and_ask_nothing_elsewhere(ann: Client) -> None:
    for path in ("/", "/review", "/progress"):
        text = ann.get(path).text
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text)
        assert re.findall(r"<script[^>]*>", text) in ([], ['<script src="/assets/review.js" defer>'])
        assert not re.search(r'(?:src|href|action)="(?!/)', text)
    for name in ("review.css", "review.js"):
        assert "://" not in ann.get(f"/assets/{name}").text and "innerHTML" not in ann.get(f"/assets/{name}").text


# --- forged forms


def test_a_form_without_its_token_changes_nothing(server: Server, ann: Client, place: Path) -> None:
    page = ann.get("/review")
    good = {"form_token": page.field("form_token"), "item": page.field("item"), "verdict": "positive"}
    other = Client(server.port)
    other.sign_in("Mallory")
    foreign = other.get("/review").field("form_token")
    before = count(place)
    for token in ("", "x", foreign, good["form_token"][:-1], good["form_token"] + "0", "é" * 20):
        for path in ("/verdict", "/undo", "/leave", "/sign-in", "/decide", "/reopen"):
            assert ann.post(path, {**good, "form_token": token, "name": "Eve"}).status == 403
    assert ann.ask("POST", "/verdict", b"item=x&verdict=positive", [FORM]).status == 403
    assert count(place) == before and ann.get("/review").field("item") == good["item"]


@pytest.mark.parametrize(
    "header",
    [("Origin", "http://evil.example"), ("Origin", "null"), ("Origin", "http://127.0.0.1"), ("Sec-Fetch-Site", "cross-site"),
     ("Sec-Fetch-Site", "same-site"), ("Origin", "http://127.0.0.1:1")],
)  # fmt: skip
def test_a_form_of_another_site_is_refused(ann: Client, place: Path, header: tuple[str, str]) -> None:
    page = ann.get("/review")
    good = {"form_token": page.field("form_token"), "item": page.field("item"), "verdict": "positive"}
    before = count(place)
    assert ann.post("/verdict", good, header).status == 403
    assert count(place) == before


def test_a_form_of_its_own_is_taken(server: Server, place: Path) -> None:
    client = Client(server.port)
    client.sign_in("Same Origin")
    page = client.get("/review")
    good = {"form_token": page.field("form_token"), "item": page.field("item"), "verdict": "positive"}
    before = count(place)
    own = ("Origin", f"http://127.0.0.1:{server.port}")
    assert client.post("/verdict", good, own, ("Sec-Fetch-Site", "same-origin")).status == 303
    assert client.post("/verdict", good, own).status == 303, "sent twice"
    assert count(place) == before + 1, "counted once"


def test_only_forms_of_a_sensible_size(ann: Client) -> None:
    token = ann.get("/review").field("form_token")
    json_type = ("Content-Type", "application/json")
    assert ann.ask("POST", "/verdict", b"{}", [json_type]).status == 415
    assert ann.ask("POST", "/verdict", b"x", [("Content-Type", "multipart/form-data; boundary=x")]).status == 415
    assert ann.ask("POST", "/verdict", b"x").status == 415
    assert ann.post("/verdict", {"form_token": token, "note": "n" * 70_000}).status == 413
    assert ann.ask("POST", "/verdict", b"&".join(b"a%d=1" % i for i in range(50)), [FORM]).status == 400
    assert ann.ask("POST", "/verdict", b"a=%ff%fe", [FORM]).status == 400
    fields = {"form_token": token, "item": "nobody", "verdict": "positive"}
    assert ann.post("/verdict", fields).status == 404
    assert ann.post("/verdict", {**fields, "verdict": "maybe"}).status == 400


# --- who somebody is


def test_nothing_without_a_name(server: Server, ann: Client) -> None:
    key = re.search(r"/media/([\w-]+)", ann.get("/review").text)[1]  # type: ignore[index]
    nobody = Client(server.port)
    for path in ("/review", "/progress", "/adjudicate", f"/media/{key}", f"/adjudicate/{key}"):
        answer = nobody.get(path)
        assert answer.status == 303 and answer.headers["location"] == "/" and not answer.body


def test_cookies_cannot_be_made_up(server: Server) -> None:
    signed_in = Client(server.port)
    answer = signed_in.sign_in("Cookie")
    assert "HttpOnly" in answer.cookies[0] and "samesite=strict" in answer.cookies[0].lower()
    name, _, value = signed_in.cookie.partition("=")
    session, reviewer, seal = value.split(".")
    for forged in (
        f"{session}.1.{seal}",
        f"{session}.{reviewer}.",
        f"{session}.{reviewer}.{'0' * 64}",
        "..",
        "",
        "a.b.c",
        f"{session}.0.{seal}",
    ):
        other = Client(server.port)
        other.cookie = f"{name}={forged}"
        assert other.get("/review").status == 303
    assert signed_in.get("/review").status == 200


def test_signing_in_makes_a_new_session(server: Server) -> None:
    """A session id that somebody planted before is worth nothing after."""
    client = Client(server.port)
    client.get("/")
    before = client.cookie
    client.sign_in("Fixed")
    planted = Client(server.port)
    planted.cookie = before
    assert client.cookie != before and planted.get("/review").status == 303


def test_reviewers_do_not_adjudicate_and_adjudicators_do_not_review(server: Server, ann: Client) -> None:
    assert ann.get("/adjudicate").status == 404
    assert (
        ann.post(
            "/decide", {"form_token": ann.get("/review").field("form_token"), "item": "x", "verdict": "positive"}
        ).status
        == 404
    )
    zoe = Client(server.port)
    zoe.sign_in("ZOE")
    assert zoe.get("/").headers["location"] == "/adjudicate" and zoe.get("/review").status == 404


@pytest.mark.parametrize("name", ["", " ", "x" * 61, "a\u202eb", "\x1b[31m", "a\nb\x00"])
def test_names_that_are_none(server: Server, name: str) -> None:
    assert Client(server.port).sign_in(name).headers["location"] == "/?wrong=name"


# --- files


@pytest.mark.parametrize(
    "path",
    ["/media/", "/media", "/media/..", "/media/../secret.png", "/media/..%2fsecret.png", "/media/%2e%2e%2fsecret.png",
     "/media/%2e%2e/%2e%2e/etc/passwd", "/media//etc/passwd", "/media/hidden.txt", "/media/p0.png", "/media/secret-0", "/media/%00",
     "/media/....//secret.png", "/assets/", "/assets/..%2fserver.py", "/assets/../server.py", "/assets/%2e%2e/store.py",
     "/assets/item.html", "/assets/review.css%00.png", "/templates/item.html", "/results.jsonl", "/results.review.sqlite", "/..",
     "/media/" + "a" * 5000, "/media/file:%2f%2f%2fetc%2fpasswd"],
)  # fmt: skip
def test_no_address_leads_to_a_file(ann: Client, path: str) -> None:
    answer = ann.get(path)
    assert answer.status in (400, 404), path
    assert (
        b"SECRET" not in answer.body
        and b"root:" not in answer.body
        and b"PNG" not in answer.body
        and b"import" not in answer.body
    )


def test_media_are_what_they_were(tmp_path: Path) -> None:
    """A file that was changed behind the server's back into HTML, SVG or a way out is not given out."""
    results = write_results(tmp_path / "d", n=1)
    outside = tmp_path / "outside.png"
    outside.write_bytes(png(value=200))
    with serving(results) as server:
        client = Client(server.port)
        client.sign_in("Ann")
        address = re.search(r"/media/[\w-]+", client.get("/review").text)[0]  # type: ignore[index]
        good = client.get(address)
        assert good.status == 200 and good.headers["content-type"] == "image/png" and good.body == png(value=0)
        picture = tmp_path / "d" / "p0.png"
        for content in (
            b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>",
            b"<!doctype html><script>1</script>",
            b"",
        ):
            picture.write_bytes(content)
            assert client.get(address).status == 404
        picture.unlink()
        assert client.get(address).status == 404
        picture.symlink_to(outside)
        assert client.get(address).status == 404, "a link that leads out"
        assert client.get("/review").status == 200, "and the page still works"


def test_sounds_can_be_asked_for_in_parts(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(wav())
    (tmp_path / "r.csv").write_text("id,file,verdict\na,a.wav,uncertain\n")
    with serving(tmp_path / "r.csv") as server:
        client = Client(server.port)
        client.sign_in("Ann")
        address = re.search(r"/media/[\w-]+", client.get("/review").text)[0]  # type: ignore[index]
        part = client.get(address, ("Range", "bytes=8-11"))
        assert part.status == 206 and part.body == b"WAVE" and part.headers["content-type"] == "audio/wav"
        assert client.get(address, ("Range", "bytes=99999999-")).status == 416
        many = client.get(address, ("Range", "bytes=" + ",".join("0-1" for _ in range(2000))))
        assert many.status in (200, 206, 400, 416) and len(many.body) < 1_000_000


def test_a_sound_or_an_ecg_that_is_gone_does_not_stop_the_review(tmp_path: Path) -> None:
    import numpy as np

    (tmp_path / "a.wav").write_bytes(wav())
    np.save(tmp_path / "e.npy", np.zeros((2, 500)))
    (tmp_path / "r.csv").write_text("id,file,verdict\na,a.wav,uncertain\ne,e.npy,uncertain\n")
    with serving(tmp_path / "r.csv", "--fs", "100") as server:
        (tmp_path / "a.wav").unlink()
        (tmp_path / "e.npy").write_bytes(b"no array")
        client = Client(server.port)
        client.sign_in("Ann")
        for _ in range(2):
            page = client.get("/review")
            assert page.status == 200 and " broken" in page.text
            assert client.judge("uncertain", note="gone") is not None
        assert "All done" in client.get("/review").text


def test_a_blind_page_gives_nothing_away(ann: Client, place: Path) -> None:
    page, rows = (
        ann.get("/review"),
        [json.loads(line) for line in (place / "data" / "results.jsonl").read_text().splitlines()],
    )
    for row in rows:
        assert row["id"] not in page.text and row["image"] not in page.text
    assert "agent" not in page.text and "label" not in page.text.replace("aria-label", "").replace(
        "<label", ""
    ).replace("</label", "")
    stored = (place / "data" / "results.review.sqlite").read_bytes()
    assert str(place).encode() not in stored and b'"label"' not in stored
    media = ann.get(re.search(r"/media/[\w-]+", page.text)[0])  # type: ignore[index]
    assert "p0" not in str(media.headers) and "filename" not in str(media.headers)


def test_not_blind_tells(tmp_path: Path) -> None:
    with serving(write_results(tmp_path, n=1), "--not-blind") as server:
        client = Client(server.port)
        client.sign_in("Ann")
        text = client.get("/review").text
        assert "<dt>label</dt><dd>real</dd>" in text and "uncertain" in text


JOINED = (
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian: a zero-width non-joiner
    "\u0915\u094d\u200d\u0937",  # Hindi: a zero-width joiner
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",  # a family
    "\u05e9\u05dc\u05d5\u05dd \u202eabc\u202c soft\u00adhyphen",
)


def test_people_see_the_text_that_the_model_got(tmp_path: Path) -> None:
    with serving(write_results(tmp_path, texts=JOINED)) as server:
        client = Client(server.port)
        client.sign_in("Ann")
        seen = set()
        for _ in JOINED:
            found = re.search(r'<p dir="auto"><bdi>(.*?)</bdi></p>', client.get("/review").text, re.DOTALL)
            assert found is not None
            seen.add(html.unescape(found.group(1)))
            assert client.judge() is not None
        assert seen == set(JOINED)


def test_hostile_texts_are_text(tmp_path: Path) -> None:
    with serving(write_results(tmp_path, texts=HOSTILE), "--question", HOSTILE[0], "--not-blind") as server:
        client = Client(server.port)
        client.sign_in(HOSTILE[2][:60])
        for _ in HOSTILE:
            page = client.get("/review").text
            assert "<script>window" not in page and 'onerror="window' not in page and "<svg onload" not in page
            assert not re.search(r"[\x00\x07\x1b]", page)
            outside = re.sub(r"<bdi>.*?</bdi>", "", page, flags=re.DOTALL)  # a text keeps its own order to itself
            assert not re.search(r"[\u202e\u2066]", outside)
            assert client.judge(note=HOSTILE[4]) is not None
        assert "<script>window" not in client.get("/progress").text


# --- from other machines


def test_remote_use_needs_the_token(tmp_path: Path) -> None:
    results = write_results(tmp_path, n=2)
    options = ("--host", "0.0.0.0", "--allow-remote", "--allow-host", "review.example.org")
    server = start(results, *options)
    try:
        file = tmp_path / "results.review.token"
        token = file.read_text().strip()
        assert len(token) >= 32 and stat.S_IMODE(file.stat().st_mode) == 0o600
        client = Client(server.port)
        assert 'name="token"' in client.get("/").text
        for wrong in ("", "x", token[:-1], token + "x", token.upper() + "é"):
            assert client.sign_in("Ann", token=wrong).headers["location"] == "/?wrong=token"
            assert client.get("/review").status == 303
        assert client.sign_in("Ann", token=token).headers["location"] == "/" and client.judge() is not None
        assert client.get("/", ("Host", f"192.168.1.7:{server.port}")).status == 303, "an address cannot be rebound"
        assert client.get("/", ("Host", "review.example.org")).status == 303
        assert client.get("/", ("Host", f"evil.example:{server.port}")).status == 400
        _, said = server.stop()
        assert token not in said and "results.review.token" in said
        with closing(sqlite3.connect(tmp_path / "results.review.sqlite")) as db:
            assert token not in "".join(map(str, db.iterdump()))
        assert token not in client.cookie
    finally:
        server.kill()
    file.write_text("another-token-that-is-long-enough\n")
    with serving(results, *options) as again:
        later = Client(again.port)
        later.cookie = client.cookie
        assert later.get("/review").status == 303, "cookies of the old token are worth nothing"
    file.write_text("short\n")
    done = subprocess.run(
        [sys.executable, "-m", "hitmiss", "review", str(results), *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3 and "at least 16" in done.stderr and "short\n" not in done.stderr


def test_a_further_name_needs_the_token_too(tmp_path: Path) -> None:
    """Behind a proxy the server listens on loopback, and still others come."""
    with serving(write_results(tmp_path, n=1), "--allow-host", "review.example.org") as server:
        client = Client(server.port)
        assert 'name="token"' in client.get("/", ("Host", "review.example.org")).text
        assert client.sign_in("Ann").headers["location"] == "/?wrong=token"
    assert (tmp_path / "results.review.token").is_file()


def test_a_loopback_server_listens_on_loopback_alone(server: Server) -> None:
    """What listens on the port, as the system says it."""
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    own = [row[1] for row in listening if row[1].endswith(f":{server.port:04X}") and row[3] == "0A"]
    assert own == [f"0100007F:{server.port:04X}"]


# --- the machine


def test_a_port_that_is_taken(server: Server, tmp_path: Path) -> None:
    words = ["review", str(write_results(tmp_path, n=1)), "--port", str(server.port)]
    done = subprocess.run([sys.executable, "-m", "hitmiss", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 5 and "cannot listen" in done.stderr


def test_a_full_disk_is_told_and_loses_nothing(tmp_path: Path) -> None:
    """The server may not write files beyond a size: as when the disk is full."""
    import resource

    results = write_results(tmp_path, texts=[f"t{i}" for i in range(60)])
    limit = 400_000

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    with serving(results, preexec_fn=small) as server:
        client = Client(server.port)
        client.sign_in("Ann")
        saved, refused = 0, None
        for _ in range(60):
            page = client.get("/review")
            if page.status != 200:
                refused = page
                break
            fields = {"form_token": page.field("form_token"), "item": page.field("item"), "verdict": "positive"}
            answer = client.post("/verdict", {**fields, "note": "é" * 2000})
            if answer.status != 303:
                refused = answer
                break
            saved += 1
        assert refused is not None and refused.status == 503 and "NOT saved" in refused.text and 0 < saved < 60
    assert asked(tmp_path / "results.review.sqlite", "SELECT count(*) FROM verdicts") == [(saved,)]
    assert asked(tmp_path / "results.review.sqlite", "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_when_told_and_keeps_everything(tmp_path: Path, how: signal.Signals) -> None:
    server = start(write_results(tmp_path, n=3))
    client = Client(server.port)
    client.sign_in("Ann")
    assert client.judge() is not None
    code, said = server.stop(how)
    assert code == 0 and "Traceback" not in said  # a server that is told to stop, by either signal, has done its work
    assert asked(tmp_path / "results.review.sqlite", "SELECT count(*) FROM verdicts") == [(1,)]


def test_the_review_can_be_read_by_its_owner_alone(place: Path, server: Server) -> None:
    assert server.port and stat.S_IMODE((place / "data" / "results.review.sqlite").stat().st_mode) == 0o600


def test_broken_requests_do_not_stop_it(server: Server) -> None:
    for junk in (
        b"\x00\xff" * 100,
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /verdict HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"GET /" + b"a" * 100_000,
    ):
        with socket.create_connection(("127.0.0.1", server.port)) as raw:
            raw.sendall(junk)
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(65536):
                pass
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", "/", headers={"Host": f"127.0.0.1:{server.port}"})
    assert connection.getresponse().status == 200
    connection.close()
    assert server.process.poll() is None and os.path.exists(f"/proc/{server.process.pid}")  # noqa: PTH110
