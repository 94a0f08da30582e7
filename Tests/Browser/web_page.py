"""The example page of clients/web in Chromium, against a server of another origin, and the vectors. Called by
Tests/Integration/web.sh, whose userid, password and items it uses.
"""

import base64
import hashlib
import http.server
import json
import os
import pathlib
import re
import ssl
import sys
import tempfile
import threading
import urllib.parse

from chromium import Chromium, Failure, Page, check
from recorder import Recorder

ROOT = pathlib.Path(__file__).parents[2]
URL = urllib.parse.urlsplit(os.environ["SALTERN_TEST_URL"])
WORK = pathlib.Path(os.environ["SALTERN_TEST_WORK"])
# The server allows the origin of this port.
PORT = int(os.environ["SALTERN_TEST_PAGE_PORT"])
TYPES = {"html": "text/html", "js": "text/javascript", "json": "application/json"}
FILES = ["clients/web/saltern.js", "Tests/Web/vectors.js", "docs/vectors.json", "Tests/Browser/share-vectors.json"]


class Site:
    """Serves the pages, from another origin than that of the API."""

    def __init__(self, recorder, identity):
        self.origin = f"https://localhost:{PORT}"
        self.api = recorder.origin
        self.files = {"/" + name.rsplit("/", 1)[1]: (ROOT / name).read_bytes() for name in FILES}
        example = (ROOT / "clients/web/example.html").read_text()
        self.files["/example.html"] = example.replace("https://localhost:8443", self.api).encode()
        self.files["/empty.html"] = b"<!doctype html><title>Empty</title><link rel=icon href=data:,>"
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), handler(self.files))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(identity)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def handler(files):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path in files:
                self.send_response(200)
                self.send_header("Content-Type", TYPES[self.path.rsplit(".", 1)[1]])
                self.end_headers()
                self.wfile.write(files[self.path])
            else:
                self.send_response(204)
                self.end_headers()

        def log_message(self, format, *args):
            pass

    return Handler


def check_vectors(page, site):
    page.go(site.origin + "/empty.html")
    held = page.evaluate("""(async () => {
        const [saltern, { checkVectors }] = await Promise.all([import("/saltern.js"), import("/vectors.js")]);
        const read = async (name) => (await fetch(name)).json();
        return checkVectors(saltern, await read("/vectors.json"), await read("/share-vectors.json"));
    })()""")
    check(len(held) >= 7, f"the vectors to hold: {held}")


def check_policy():
    """The policy of the page names the hash of its script."""
    example = (ROOT / "clients/web/example.html").read_text()
    script = example.split('<script type="module">')[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    check(f"'sha256-{digest}'" in example, f"'sha256-{digest}' in the policy of example.html")


def fill(page, form, **values):
    for name, value in values.items():
        page.evaluate(f"document.forms.{form}.elements.{name}.value = {json.dumps(value)}")
    page.click(f"#{form} button")


def check_example(page, site, recorder, password):
    notes = "[...document.querySelectorAll('li')].map((line) => line.firstChild.textContent)"
    page.go(site.origin + "/example.html")
    page.wait("document.forms.login?.hidden === false", "the form")
    fill(page, "login", userid=(WORK / "userid").read_text().strip(), password=password)
    page.wait(f"{notes}.some((text) => text === 'oil: Buy oil. ')", "the note of the kit")
    fill(page, "note", title="short-lived", body="to be deleted")
    # The page empties the form once the note is stored.
    page.wait(f"{notes}.some((text) => text.includes('short-lived'))", "the first note")
    page.wait("document.forms.note.elements.title.value === ''", "the empty form")
    fill(page, "note", title="written in Chromium", body="Grüße aus Chromium")
    page.wait(f"{notes}.some((text) => text.includes('Grüße'))", "the note, by the live stream")
    index = page.evaluate(f"{notes}.findIndex((text) => text.includes('short-lived'))")
    page.click(f"li:nth-child({index + 1}) button")
    page.wait(f"!{notes}.some((text) => text.includes('short-lived'))", "the note to be deleted")
    index = page.evaluate(f"{notes}.findIndex((text) => text.includes('oil'))")
    page.click(f"li:nth-child({index + 1}) button:last-child")
    page.wait("document.querySelector('[role=status]').textContent.includes('/s/')", "a link")
    link = page.evaluate("document.querySelector('[role=status]').textContent")
    check(re.fullmatch(re.escape(site.api) + "/s/[0-9A-Za-z]{22}#[0-9A-Za-z]{22}", link), f"a link, not {link}")
    check(not page.complaints(), f"no complaint of the browser: {page.complaints()}")
    check_wire(recorder.sent(), password, link.split("#")[1])
    asked = [url for _, url in page.requested() if urllib.parse.urlsplit(url).path.startswith("/v1/")]
    check(asked and all(url.startswith(site.api) for url in asked), f"requests to {site.api}: {asked}")


def check_wire(sent, *secrets):
    check(b"POST /v1/sessions" in sent and b"PUT /v1/items/" in sent, "requests on the wire")
    for secret in (*secrets, "Buy oil", "Grüße"):
        for form in (secret.encode(), base64.b64encode(secret.encode()), urllib.parse.quote(secret).encode()):
            check(form not in sent, f"nothing of {secret} on the wire")


def main():
    check_policy()
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(URL.hostname, URL.port, os.environ["SALTERN_TEST_CERTIFICATE"], folder)
        site = Site(recorder, os.path.join(folder, "recorder.pem"))
        chromium = Chromium(recorder.pin)
        try:
            with Page(chromium) as page:
                check_vectors(page, site)
            with Page(chromium) as page:
                check_example(page, site, recorder, (WORK / "password").read_text().strip())
        finally:
            chromium.close()


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(str(failure))
