"""Opens shares in a real browser, over TLS, and looks at what a person sees, what a screen reader is told, what is asked
for and what is on the wire. Called by Tests/Integration/share-page.sh.
"""

import base64
import http.client
import io
import json
import os
import pathlib
import ssl
import sys
import tempfile
import time
import urllib.parse
from contextlib import contextmanager, redirect_stdout
from datetime import datetime, timedelta, timezone

import accessibility
from chromium import Chromium, Failure, Page, check
from recorder import Recorder
from sealing import passphrase, seal, vectors

URL = urllib.parse.urlsplit(os.environ["SALTERN_TEST_URL"])
CERTIFICATE = os.environ["SALTERN_TEST_CERTIFICATE"]
TOKEN = os.environ["SALTERN_TEST_TOKEN"]
SCREENSHOTS = os.environ["SALTERN_TEST_SCREENSHOTS"]
DOCUMENT = pathlib.Path(__file__).parents[2] / "docs/protocol.md"

LOGIN = {"title": "Wi-Fi at the mill", "user": "guests@example.org", "password": "S3kr3t! für Gäste", "floor": 2,
         "notes": "The router is behind the bread oven.\nRestart it with the key on the hook."}


class Server:
    """The API, as the sender of a share uses it."""

    def __init__(self):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.load_verify_locations(cafile=CERTIFICATE)

    def request(self, method, path, body=None, **headers):
        connection = http.client.HTTPSConnection(URL.hostname, URL.port, context=self.context, timeout=60)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, headers)
        reply = connection.getresponse()
        received = reply.read()
        connection.close()
        return reply.status, reply.headers, received

    def create(self, share, **options):
        """The id of a new share."""
        status, _, body = self.request("POST", "/v1/shares", json.dumps({**share, **options}),
                                       Authorization=f"Bearer {TOKEN}", Content_Type="application/json")
        check(status == 201, f"a share, not {status} {body[:300]!r}")
        return json.loads(body)["id"]

    def look(self, share):
        """Status of a HEAD, and how many views it says are left."""
        status, headers, _ = self.request("HEAD", f"/v1/shares/{share}")
        return status, headers["Saltern-Views-Left"]


class Visits:
    """Pages that are opened through the recorder, and what holds for every one of them."""

    def __init__(self, chromium, recorder, server):
        self.chromium = chromium
        self.recorder = recorder
        self.server = server
        self.tab = None
        self.options = None

    @contextmanager
    def page(self, alone, options):
        """A page that no other visit has, or else the last one's, emptied: a new one is twice the work of a visit."""
        if alone:
            with Page(self.chromium, **options) as page:
                yield page
            return
        if self.tab and self.options == options:
            self.tab.empty()
        else:
            if self.tab:
                self.tab.close()
            self.tab, self.options = Page(self.chromium, **options), options
        yield self.tab

    @contextmanager
    def visit(self, address, secrets=(), failures=(), alone=False, **options):
        """A page at the address; an empty one when there is none. In the end it must have said and sent nothing that it must not.

        `failures` are the statuses of replies that the browser itself will report as errors.
        """
        self.recorder.forget()
        with self.page(alone, options) as page:
            if address:
                page.go(self.recorder.origin + address)
            yield page
            self.check_behaviour(page, list(failures))
            self.check_wire(secrets)

    def check_behaviour(self, page, failures):
        complaints = page.complaints()
        for status in failures:
            match = [text for text in complaints if text.startswith("network:") and f"status of {status}" in text]
            check(match, f"a reply {status}, among {complaints}")
            complaints.remove(match[0])
        check(not complaints, f"no complaint of the browser: {complaints}")
        requested = [url for _, url in page.requested()]
        check(requested, "requests")
        for url in requested:
            # What is saved as a file is made in the page.
            local = url.startswith(f"blob:{self.recorder.origin}/")
            check(local or url.startswith(self.recorder.origin + "/"), f"no request to {url}")

    def check_wire(self, secrets):
        sent = self.recorder.sent()
        check(b"GET /assets/share.js HTTP/1.1" in sent or b"GET /s/" in sent, "requests on the wire")
        for secret in secrets:
            for form in (secret, urllib.parse.quote(secret), urllib.parse.quote(secret, safe="")):
                check(form.encode() not in sent, f"nothing of {form} on the wire")
                check(base64.b64encode(form.encode()) not in sent, f"nothing of {form} in base64 on the wire")

    def open(self, page, state="open"):
        page.wait(f"document.querySelector('main')?.dataset.state === '{state}'", state)

    @contextmanager
    def shared(self, plaintext, sealing=None, options=None, phrase=None, state="open", **visit):
        """A new share, opened."""
        phrase = phrase or passphrase()
        share = self.server.create(seal(plaintext, phrase, **(sealing or {})), **(options or {}))
        address = f"/s/{share}#{urllib.parse.quote(phrase, safe='')}"
        with self.visit(address, secrets=[phrase], **visit) as page:
            self.open(page, state)
            yield page, share


SCENARIOS = []


def scenario(sentence):
    def add(function):
        SCENARIOS.append((sentence, function))
        return function
    return add


def expect(text, *parts):
    for part in parts:
        check(part in text, f"{part!r} in {text!r}")


def keep_news(page):
    """What the page takes back after a while stays, however long this takes."""
    page.evaluate("window.setTimeout = () => 0; 0")


def shoot(page, name):
    page.screenshot(os.path.join(SCREENSHOTS, f"{name}.png"))


@scenario("a text is opened at once when nothing limits its views, in every way in which it can be sealed")
def text(visits):
    for form in ("aes-256-gcm", "aes-256-gcm-iv16"):
        for pad in (False, True):
            plaintext = f"Grüße aus der Saline 🧂\n<b>not bold</b> & {form} {pad}"
            sealing = {"form": form, "pad": pad, "salt_length": 8 if pad else 32}
            with visits.shared(plaintext, sealing=sealing) as (page, share):
                check(page.texts("pre") == [plaintext], f"the text, not {page.texts('pre')}")
                check(page.evaluate("document.querySelector('b') === null"), "no HTML made of the text")
                paths = [(method, urllib.parse.urlsplit(url).path) for method, url in page.requested()]
                check(paths[0] == ("GET", f"/s/{share}"), f"the page first: {paths}")
                api = [path for path in paths if path[1].startswith("/v1/")]
                check(api == [("HEAD", f"/v1/shares/{share}"), ("GET", f"/v1/shares/{share}")], f"a look, then a view: {api}")


@scenario("texts whose end looks like padding, and texts without any end, stay what they are")
def padding(visits):
    for plaintext in ("", "a", "x" * 15 + "\x02", "x" * 16, "x" * 14 + "\x03\x02", "\n" * 15):
        for pad in (False, True):
            with visits.shared(plaintext, sealing={"pad": pad}) as (page, _):
                found = "".join(page.texts("pre"))
                check(found == plaintext, f"{plaintext!r}, not {found!r}")


@scenario("the vectors open")
def interoperability(visits):
    for vector in vectors():
        share = visits.server.create(vector["share"])
        phrase = vector["passphrase"]
        with visits.visit(f"/s/{share}#{urllib.parse.quote(phrase)}", secrets=[phrase]) as page:
            visits.open(page)
            if vector["plaintext"].startswith("{"):
                values = json.loads(vector["plaintext"])
                check(page.texts("th") == list(values), f"the names of {vector['name']}")
                check(page.texts("td span") == list(values.values()), f"the values of {vector['name']}")
            else:
                check(page.texts("pre") == [vector["plaintext"]], f"the plaintext of {vector['name']}")


@scenario("the example of docs/protocol.md opens")
def example(visits):
    text = DOCUMENT.read_text()
    source = text[text.index("### Share example in Python"):].split("```python\n")[1].split("```")[0]
    names, output = {}, io.StringIO()
    with redirect_stdout(output):
        exec(source, names)
    share = visits.server.create(json.loads(output.getvalue()))
    with visits.visit(f"/s/{share}#{names['passphrase']}", secrets=[names["passphrase"]]) as page:
        visits.open(page, "confirm")
        expect(page.text, "can be opened 3 more times")
        page.click("main button")
        visits.open(page)
        check(page.texts("td span") == ["guests", "S3kr3t!"], f"the fields, not {page.text}")


@scenario("a JSON object is a table of fields, each with its own copy button")
def fields(visits):
    value = {**LOGIN, "nested": {"a": [1, None]}, "yes": True, "nothing": None, "<i>name</i>": "<img src=x onerror=alert(1)>",
             "__proto__": "own", "url": "javascript:alert(1)"}
    plaintext = json.dumps(value, ensure_ascii=False)[:-1] + ', "number": 12345678901234567890, "exact": 1.50}'
    with visits.shared(plaintext) as (page, _):
        shown = dict(zip(page.texts("th"), page.texts("td span"), strict=True))
        expected = {**{name: text for name, text in value.items() if isinstance(text, str)}, "floor": "2", "yes": "true",
                    "nested": json.dumps(value["nested"], indent=2), "nothing": "null",
                    "number": "12345678901234567890", "exact": "1.50"}
        check(shown == expected, f"{expected}, not {shown}")
        check(page.evaluate("document.querySelectorAll('i, main img, main a').length") == 0, "no HTML and no links of it")
        keep_news(page)
        page.click("tr:nth-child(3) button:last-child")
        page.wait("document.getElementById('status').textContent === 'Copied'", "word of the copy")
        check(page.paste() == LOGIN["password"], "the password in the clipboard")
        check(page.evaluate("document.getElementById('status').offsetWidth") <= 1, "the word where no eye sees it")
        check(page.texts("main button").count("Copied") == 1, "the word once, on the button")


@scenario("a password can be hidden, shown again, and copied all the while")
def hidden_password(visits):
    with visits.shared(json.dumps(LOGIN)) as (page, _):
        check(page.texts("main button").count("Hide") == 1, "a button for the password alone")
        page.click("tr:nth-child(3) button")
        check(page.texts("tr:nth-child(3) td span") == ["••••••••"], "dots, however long it is")
        check(page.evaluate("document.querySelector('tr:nth-child(3) button').getAttribute('aria-label')") == "Show password",
              "the way back, for screen readers too")
        keep_news(page)
        page.click("tr:nth-child(3) button:last-child")
        page.wait("document.getElementById('status').textContent === 'Copied'", "word of the copy")
        check(page.paste() == LOGIN["password"], "the password in the clipboard, and no dots")
        page.click("tr:nth-child(3) button")
        check(page.texts("tr:nth-child(3) td span") == [LOGIN["password"]], "the password")


@scenario("web addresses are links when they lead where they say, in texts and in fields")
def links(visits):
    good = ["https://example.org/a?b=(c)#d", "http://example.net:8080", "HTTPS://Example.org/x"]
    bad = ["https://bank.example@evil.example/", "https://b\u00e4nk.example/", "javascript://example.org/%0aalert(1)", "https://"]
    for plaintext in (f"See {good[0]}, ({good[1]}) and {good[2]}. " + " ".join(bad),
                      json.dumps({name: name for name in good + bad})):
        with visits.shared(plaintext) as (page, _):
            check(page.texts("main a") == good, f"the links {good}, not {page.texts('main a')}")
            rel = page.evaluate("[...document.querySelectorAll('main a')].map((a) => a.rel + a.target).join()")
            check(rel == ",".join(["noopener noreferrer_blank"] * 3), "links that tell nothing of this page")
    with visits.shared(f"See {good[0]}, ({good[1]}).") as (page, _):
        check(page.texts("pre") == [f"See {good[0]}, ({good[1]})."], "the text as it is")


@scenario("a text that is made to be slow to look through is shown, with no more links than anybody follows")
def hostile_text(visits):
    for plaintext, count in (("https://a" + "." * 700_000 + "x", 0), ("https://a" + ")" * 700_000 + "x", 0),
                             ("https://a" + ".)" * 350_000, 0), ("https://" + "a" * 3_000 + ".example/ https://b.example/", 1),
                             ("https://a.example/ " * 20_000, 1_000)):
        with visits.shared(plaintext) as (page, _):
            shown = page.evaluate("document.querySelector('pre').textContent.length")
            check(shown == len(plaintext), f"all {len(plaintext)} characters, not {shown}")
            links = page.evaluate("document.querySelectorAll('main a').length")
            check(links == count, f"{count} links in {plaintext[:20]}, not {links}")


@scenario("a copy that the browser refuses leaves the text selected, and says so")
def refused_copy(visits):
    with visits.shared(json.dumps(LOGIN)) as (page, _):
        page.evaluate("navigator.clipboard.writeText = () => Promise.reject(new Error())")
        page.click("tr:nth-child(2) button")
        page.wait("document.getElementById('status').textContent.startsWith('The browser does not')", "word of it")
        check(page.evaluate("String(getSelection())") == LOGIN["user"], "the value to be selected")


@scenario("a file is offered under a safe name, as bytes that no browser shows")
def file(visits):
    data = b"\x89PNG\r\n\x1a\n<script>alert(1)</script>" + bytes(range(256))
    phrase = passphrase()
    for name, safe in (("Plan der Mühle.png", "Plan der Mühle.png"), ("../../.profile", "_.._.profile"),
                       ("invoice\u202efdp.exe", "invoicefdp.exe"), ("\u0000", "share.bin")):
        plaintext = json.dumps({"filename": name, "mediaType": "text/html", "data": base64.b64encode(data).decode()})
        with visits.shared(plaintext, phrase=phrase) as (page, _):
            expect(page.text, "A file for you", safe, "text/html", "289 bytes")
            kind = page.evaluate("fetch ? document.querySelector('main a').href.slice(0, 5) : ''")
            check(kind == "blob:", "the file to be made in the page")
            page.click("main a")
            check(page.downloaded() == (safe, data), f"the file {safe}")


@scenario("bytes that are no text are a file too, and lose no padding that is none")
def binary(visits):
    for data in (bytes(range(128, 256)), b"\xff" * 31 + b"\x01"):
        with visits.shared(data) as (page, _):
            expect(page.text, "A file for you", "share.bin")
            page.click("main a")
            check(page.downloaded() == ("share.bin", data), "the bytes")


@scenario("a wrong passphrase is told as what it may be, and can be corrected without a second view")
def wrong_key(visits):
    phrase = passphrase()
    share = visits.server.create(seal("opened after all", phrase), maxViews=1)
    with visits.visit(f"/s/{share}#{phrase[:-1]}", secrets=[phrase, phrase[:-1]]) as page:
        visits.open(page, "confirm")
        page.click("main button")
        visits.open(page, "wrong-key")
        expect(page.text, "The key does not fit", "or the content was changed", "Do not close this page")
        shoot(page, "wrong-key")
        page.evaluate(f"location.hash = {json.dumps(phrase)}; 0")
        visits.open(page)
        check(page.texts("pre") == ["opened after all"], "the text")


@scenario("what was changed does not open; what was cut off is damaged, whatever the passphrase")
def damaged(visits):
    phrase = passphrase()
    share = seal("x" * 100, phrase)
    sealed = bytearray(base64.b64decode(share["sealed"]))
    for position in (0, 50, len(sealed) - 1):
        changed = bytearray(sealed)
        changed[position] ^= 1
        identifier = visits.server.create({**share, "sealed": base64.b64encode(changed).decode()})
        with visits.visit(f"/s/{identifier}#{phrase}", secrets=[phrase]) as page:
            visits.open(page, "wrong-key")
    # The server takes nothing that is cut off, so the reply is made to be.
    identifier = visits.server.create(share)
    bodies = {
        "short": json.dumps({**share, "sealed": base64.b64encode(sealed[:27]).decode()}),
        "no base64": json.dumps({**share, "sealed": "*"}),
        "no salt": json.dumps({**share, "salt": None}),
        "no iterations": json.dumps({**share, "iterations": 0.5}),
        "too many iterations": json.dumps({**share, "iterations": 10_000_001}),
        "half": json.dumps(share)[:-10],
        "nothing": "null",
    }
    for what, body in bodies.items():
        with visits.visit(None) as page:
            with replying(page, f"/v1/shares/{identifier}", 200, body):
                page.go(f"{visits.recorder.origin}/s/{identifier}#{phrase}")
                visits.open(page, "damaged")
                expect(page.text, "The content is damaged")
    with visits.visit(None) as page:
        with replying(page, f"/v1/shares/{identifier}", 200, json.dumps({**share, "format": "aes-512"})):
            page.go(f"{visits.recorder.origin}/s/{identifier}#{phrase}")
            visits.open(page, "unknown-format")
            expect(page.text, "This link needs the app")


@scenario("a link without its passphrase asks for nothing and uses up nothing")
def no_key(visits):
    share = visits.server.create(seal("secret", passphrase()), maxViews=1)
    for end in ("", "#"):
        with visits.visit(f"/s/{share}{end}") as page:
            visits.open(page, "no-key")
            expect(page.text, "The link is incomplete", "No view has been used")
            check(not any("/v1/" in url for _, url in page.requested()), "nothing to be asked of the API")
    check(visits.server.look(share) == (200, "1"), "a view to be left")


@scenario("unknown and expired shares are told alike")
def gone(visits):
    phrase = passphrase()
    expiring = (datetime.now(timezone.utc) + timedelta(seconds=8)).strftime("%Y-%m-%dT%H:%M:%SZ")
    share = visits.server.create(seal("for a moment", phrase), expiresAt=expiring)
    while visits.server.look(share)[0] != 404:
        time.sleep(0.25)
    messages = []
    for identifier in (share, "0" * 22, "nonsense"):
        with visits.visit(f"/s/{identifier}#{phrase}", secrets=[phrase], failures=[404]) as page:
            visits.open(page, "gone")
            messages.append(page.text)
            if identifier == share:
                shoot(page, "gone")
    check(len(set(messages)) == 1, f"one message: {messages}")
    expect(messages[0], "This link does not work", "It has expired")


@scenario("a limited share is opened by a click and by nothing else; previews and looks use up nothing")
def views(visits):
    phrase = passphrase()
    address = f"#{phrase}"
    share = visits.server.create(seal("twice", phrase), maxViews=2)
    for method in ("GET", "HEAD"):
        status, headers, body = visits.server.request(method, f"/s/{share}")
        check(status == 200 and headers["Content-Type"].startswith("text/html"), "the page for a preview")
        check(phrase.encode() not in body and share.encode() not in body, "the same page for every share")
    with visits.visit(f"/s/{share}{address}", secrets=[phrase], scripts=False) as page:
        page.until(lambda: "This page needs JavaScript" in page.headings(), "a page without scripts")
    for left, sentence, after in ((2, "can be opened 2 more times", "The link can be opened one more time."),
                                  (1, "a wrong key uses the view, too", "This was the last view")):
        for _ in range(2):
            with visits.visit(f"/s/{share}{address}", secrets=[phrase]) as page:
                visits.open(page, "confirm")
                expect(page.text, sentence)
                check(visits.server.look(share) == (200, str(left)), f"{left} views to be left")
                check([method for method, url in page.requested() if "/v1/" in url] == ["HEAD"], "a look only")
        with visits.visit(f"/s/{share}{address}", secrets=[phrase]) as page:
            visits.open(page, "confirm")
            if left == 2:
                shoot(page, "confirm")
            page.click("main button")
            visits.open(page)
            expect(page.text, "twice", after)
    with visits.visit(f"/s/{share}{address}", secrets=[phrase], failures=[404]) as page:
        visits.open(page, "gone")


@scenario("the legacy form of the link becomes the fragment form, and its passphrase is sent once and never again")
def legacy(visits):
    phrase = "Leg4cy-Key_9"
    share = visits.server.create(seal("from an old link", phrase, form="aes-256-gcm-iv16", pad=True))
    with visits.visit(f"/s/{share}/{phrase}?utm_source=mail", alone=True) as page:
        visits.open(page)
        check(page.texts("pre") == ["from an old link"], "the text")
        check(page.evaluate("location.href") == f"{visits.recorder.origin}/s/{share}#{phrase}", "the form with a fragment")
        # about:blank and the page.
        check(page.evaluate("history.length") == 2, "no entry of the history more")
        lines = [line for line in visits.recorder.request_lines() if phrase in line]
        check(lines == [f"GET /s/{share}/{phrase}?utm_source=mail HTTP/1.1"], f"the passphrase in one request: {lines}")
        check(visits.recorder.sent().count(phrase.encode()) == 1, "no other trace of it")
        visits.recorder.forget()
        page.call("Page.reload")
        page.wait("performance.getEntriesByType('navigation')[0].type === 'reload'", "a reload")
        visits.open(page)
        check(phrase.encode() not in visits.recorder.sent(), "nothing of it after a reload")
    for address in (f"/s/{share}/{phrase}/", f"/s/{share}/#{phrase}", f"/s/{share}/?utm_source=mail#{phrase}"):
        with visits.visit(address) as page:
            visits.open(page)
            check(page.texts("pre") == ["from an old link"], f"the text behind {address}")
            check(page.evaluate("location.href") == f"{visits.recorder.origin}/s/{share}#{phrase}", "the form with a fragment")


@scenario("passphrases may be any text, percent-encoded or not")
def passphrases(visits):
    for phrase, fragment in (("a b+c/d?e#f", None), ("Grüße 🧂", None), ("Grüße", "Grüße"), ("100%", "100%"),
                             ("%41", "%2541"), ("a%zz", "a%zz"), ("<>\"'&", None), ("x=1&y=2", "x=1&y=2")):
        share = visits.server.create(seal("opened", phrase))
        fragment = fragment or urllib.parse.quote(phrase, safe="")
        with visits.visit(f"/s/{share}?fbclid=1#{fragment}", secrets=[phrase] if len(phrase) > 3 else []) as page:
            visits.open(page)
            check(page.texts("pre") == ["opened"], f"{phrase} to open it")
            check("?" not in page.evaluate("location.href").split("#")[0], "what was added to the link to be gone")


@scenario("a person who reads German reads German")
def german(visits):
    phrase = passphrase()
    share = visits.server.create(seal(json.dumps(LOGIN), phrase), maxViews=3, expiresAt="2099-03-01T12:00:00Z")
    with visits.visit(f"/s/{share}#{phrase}", secrets=[phrase], language="de-AT,de;q=0.9,en;q=0.8") as page:
        visits.open(page, "confirm")
        check(page.evaluate("document.documentElement.lang") == "de", "the language to be said")
        expect(page.text, "Jetzt öffnen?", "noch 3-mal öffnen")
        page.click("main button")
        visits.open(page)
        expect(page.text, "Mit Ihnen geteilt", "Kopieren", "Es lässt sich noch 2-mal öffnen.",
               "Der Link gilt bis 1. März 2099 um 13:00.")
        shoot(page, "german")
    with visits.visit(f"/s/{'0' * 22}#{phrase}", failures=[404], language="fr,es;q=0.5") as page:
        visits.open(page, "gone")
        check(page.evaluate("document.documentElement.lang") == "en", "English for everybody else")


@scenario("without scripts, the page says what it needs")
def no_script(visits):
    share = visits.server.create(seal("secret", passphrase()), maxViews=1)
    for language, sentence in (("en", "This page needs JavaScript"), ("de", "Diese Seite braucht JavaScript")):
        with visits.visit(f"/s/{share}#{passphrase()}", scripts=False, language=language) as page:
            page.until(lambda: sentence in page.headings(), lambda: f"{sentence}, not {page.headings()}")
            shoot(page, f"no-script-{language}")
    check(visits.server.look(share) == (200, "1"), "a view to be left")


@scenario("a browser that cannot decrypt is told so before a view is used up")
def outdated(visits):
    phrase = passphrase()
    share = visits.server.create(seal("secret", phrase), maxViews=1)
    with visits.visit(None, alone=True) as page:
        page.call("Page.addScriptToEvaluateOnNewDocument",
                  source="Object.defineProperty(Crypto.prototype, 'subtle', { value: undefined })")
        page.go(f"{visits.recorder.origin}/s/{share}#{phrase}")
        visits.open(page, "outdated")
        expect(page.text, "This browser cannot open the link", "No view has been used")
    check(visits.server.look(share) == (200, "1"), "a view to be left")


@contextmanager
def replying(page, path, status, body, **headers):
    """Until the end, the browser is told that the server replies this to GET; to HEAD with the status alone."""
    fields = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    page.call("Fetch.enable", patterns=[{"urlPattern": f"*{path}"}])
    receive = page.chromium.note

    def note(event):
        if event.get("method") == "Fetch.requestPaused" and event.get("sessionId") == page.session:
            pending.append(event["params"]["requestId"])
        receive(event)

    pending = []
    page.chromium.note = note
    wait = page.wait

    def wait_and_answer(expression, what):
        def answered():
            while pending:
                answer(pending.pop(0))
            return True

        wait(expression, what, answered)

    def answer(request):
        if status:
            page.call("Fetch.fulfillRequest", requestId=request, responseCode=status,
                      responseHeaders=[{"name": name, "value": value} for name, value in fields.items()],
                      body=base64.b64encode(body.encode()).decode())
        else:
            page.call("Fetch.failRequest", requestId=request, errorReason="ConnectionReset")

    page.wait = wait_and_answer
    try:
        yield
    finally:
        page.wait = wait
        page.chromium.note = receive
        page.call("Fetch.disable")


@scenario("too many requests, a server in trouble and no network are told apart, and can be tried again")
def failures(visits):
    phrase = passphrase()
    share = visits.server.create(seal("at last", phrase))
    path = f"/v1/shares/{share}"
    for status, state, sentence, headers in (
        (429, "limited", "Wait 17 s", {"Retry_After": "17"}),
        (503, "server", "e" * 32, {"X_Request_Id": "e" * 32}),
        (None, "network", "Check your connection", {}),
    ):
        with visits.visit(None, secrets=[phrase], failures=[status] if status else []) as page:
            with replying(page, path, status, "{}", **headers):
                page.go(f"{visits.recorder.origin}/s/{share}#{phrase}")
                visits.open(page, state)
                expect(page.text, sentence)
            page.click("main button")
            visits.open(page)
            check(page.texts("pre") == ["at last"], "the text")
            if status is None:
                page.events[:] = [event for event in page.events
                                  if event[1].get("entry", {}).get("text") != "Failed to load resource: net::ERR_CONNECTION_RESET"]


@scenario("everything can be done with the keyboard alone, and the focus is where the news is")
def keyboard(visits):
    phrase = passphrase()
    share = visits.server.create(seal(json.dumps(LOGIN), phrase), maxViews=5)
    focused = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"
    with visits.visit(f"/s/{share}#{phrase}", secrets=[phrase]) as page:
        visits.open(page, "confirm")
        check(page.evaluate(focused) == "Open it now?", "the focus on the question")
        page.press("Tab")
        check(page.evaluate(focused) == "Open", "the button after it")
        check(page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid", "the focus to be seen")
        page.press("Enter")
        visits.open(page)
        check(page.evaluate(focused) == "Shared with you", "the focus on what was opened")
        for name in LOGIN:
            if name == "password":
                page.press("Tab")
                check(page.evaluate(focused) == "Hide password", f"the button that hides it, not {page.evaluate(focused)}")
            page.press("Tab")
            check(page.evaluate(focused) == f"Copy {name}", f"the button of {name}, not {page.evaluate(focused)}")
        keep_news(page)
        page.press("Tab", modifiers=8)
        page.press(" ")
        page.wait("document.getElementById('status').textContent !== ''", "word of the copy")


@scenario("screen readers are told what there is: landmarks, names, news; and every text can be read in light and dark")
def accessible(visits):
    phrase = passphrase()
    limited = visits.server.create(seal("text " * 200, phrase), maxViews=9, expiresAt="2099-03-01T12:00:00Z")
    with visits.visit(f"/s/{limited}#{phrase}", secrets=[phrase]) as page:
        visits.open(page, "confirm")
        check_everything(page, "Open it now?")
        page.click("main button")
        visits.open(page)
        tree = check_everything(page, "Shared with you")
        check(("region", "Text") in [(role, name) for role, name, _ in tree], "the text as a region of its own")
    wide = {**LOGIN, "token": "x" * 300, "n" * 100: "y"}
    with visits.shared(json.dumps(wide), width=320, height=600, touch=True) as (page, _):
        tree = check_everything(page, "Shared with you")
        names = [name for role, name, _ in tree if role == "rowheader"]
        check(names == list(wide), f"the names as headers of rows, also on a phone: {names}")
    with visits.shared(json.dumps({"filename": "a.pdf", "mediaType": "application/pdf", "data": "AAAA"})) as (page, _):
        check_everything(page, "A file for you")
    with visits.visit(f"/s/{'0' * 22}") as page:
        visits.open(page, "no-key")
        check_everything(page, "The link is incomplete")


def check_everything(page, heading):
    tree = accessibility.check_tree(page)
    accessibility.check_looks(page)
    focused = [name for role, name, properties in tree if properties.get("focused") and role == "heading"]
    check(focused == [heading], f"the focus on {heading}: {focused}")
    return tree


@scenario("ten million iterations are announced while they last")
def slow(visits):
    phrase = passphrase()
    share = seal("worth the wait", phrase, iterations=10_000_000)
    identifier = visits.server.create(share)
    with visits.visit(None, secrets=[phrase], alone=True) as page:
        page.call("Page.addScriptToEvaluateOnNewDocument", source="""
            addEventListener("DOMContentLoaded", () => {
                const main = document.querySelector("main");
                window.seen = [];
                new MutationObserver(() => window.seen.push([main.dataset.state, main.getAttribute("aria-busy"),
                    document.getElementById("status").textContent])).observe(main, { attributes: true, subtree: true,
                    childList: true });
            });""")
        page.go(f"{visits.recorder.origin}/s/{identifier}#{phrase}")
        visits.open(page)
        check(page.texts("pre") == ["worth the wait"], "the text")
        seen = page.evaluate("window.seen")
        check(any(state == "busy" and busy == "true" and "Decrypting" in text for state, busy, text in seen),
              f"word of the decryption: {seen}")


@scenario("pictures of it, in light, in dark and on a phone")
def pictures(visits):
    file = json.dumps({"filename": "Plan of the mill.pdf", "mediaType": "application/pdf",
                       "data": base64.b64encode(os.urandom(123_456)).decode()})
    text = "Dear Ada,\n\nthe key to the boathouse is in the blue tin, third shelf on the left.\n\nSee you on Sunday\nGrace"
    options = {"maxViews": 5, "expiresAt": "2099-03-01T12:00:00Z"}
    for name, size in (("light", {}), ("dark", {"dark": True}),
                       ("phone", {"width": 390, "height": 844, "touch": True}),
                       ("phone-dark", {"width": 390, "height": 844, "touch": True, "dark": True})):
        for kind, plaintext in (("fields", json.dumps(LOGIN)), ("text", text), ("file", file)):
            with visits.shared(plaintext, options=options, state="confirm", **size) as (page, _):
                dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
                check(dark == size.get("dark", False), f"{name} in the colours of its name")
                if kind == "fields":
                    shoot(page, f"{name}-confirm")
                page.click("main button")
                visits.open(page)
                shoot(page, f"{name}-{kind}")


def main():
    names = sys.argv[1:]
    os.makedirs(SCREENSHOTS, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(URL.hostname, URL.port, CERTIFICATE, folder)
        chromium = Chromium(recorder.pin)
        try:
            visits = Visits(chromium, recorder, Server())
            for sentence, function in SCENARIOS:
                if names and function.__name__ not in names:
                    continue
                print(f"-- {sentence}", flush=True)
                function(visits)
        finally:
            chromium.close()


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(str(failure))
