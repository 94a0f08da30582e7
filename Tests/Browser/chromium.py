"""A headless Chromium, driven over the pipe of the Chrome DevTools Protocol. Needs nothing but Python's own library."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

# How long anything may take on a machine that is busy with something else. Nothing waits for this long but a failure.
PATIENCE = 180.0


class Failure(Exception):
    """Something is not as it has to be."""


class Refused(Failure):
    """The browser does not do what it was told, for example because the page is being replaced."""


def check(holds, expected):
    if not holds:
        raise Failure(f"expected {expected}")


class Chromium:
    """The browser's process. It knows one host, one certificate and no way out."""

    def __init__(self, pin, executable="chromium"):
        self.profile = tempfile.mkdtemp(prefix="saltern-chromium-")
        self.next_id = 0
        self.buffer = b""
        self.pages = {}
        self.downloads = {}
        commands, self.commands = os.pipe()
        self.replies, replies = os.pipe()
        self.process = subprocess.Popen(
            [
                # The protocol is spoken over the descriptors 3 and 4.
                "bash", "-c", f'exec "$@" 3<&{commands} 4>&{replies}', "bash", executable, "--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu",
                "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
                "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions",
                "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost",
                f"--ignore-certificate-errors-spki-list={pin}", f"--user-data-dir={self.profile}", "about:blank",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(commands, replies),
        )
        os.close(commands)
        os.close(replies)

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(timeout=20)
        except (Failure, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.commands)
        os.close(self.replies)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, session=None, **parameters):
        """The result of a command. Events that arrive before it go to their pages."""
        self.next_id += 1
        wanted = self.next_id
        message = {"id": wanted, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data):]
        deadline = time.monotonic() + PATIENCE
        while True:
            reply = self.receive(deadline, method)
            if reply.get("id") == wanted:
                if "error" in reply:
                    raise Refused(f"{method} to succeed: {reply['error']}")
                return reply["result"]
            self.note(reply)

    def receive(self, deadline, waiting_for):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.replies], [], [], max(0.0, deadline - time.monotonic()))
            check(ready, f"the browser to answer {waiting_for}")
            data = os.read(self.replies, 1 << 20)
            check(data, f"the browser to live on during {waiting_for}")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def note(self, event):
        if event.get("method") == "Browser.downloadWillBegin":
            self.downloads[event["params"]["guid"]] = dict(event["params"], state="inProgress")
        elif event.get("method") == "Browser.downloadProgress":
            self.downloads[event["params"]["guid"]]["state"] = event["params"]["state"]
        page = self.pages.get(event.get("sessionId"))
        if page:
            page.events.append((event["method"], event["params"]))


class Page:
    """A tab of a profile of its own, which records everything that it asks for and everything that goes wrong in it."""

    def __init__(self, chromium, language="en", width=1000, height=800, dark=False, scripts=True, touch=False):
        self.chromium = chromium
        self.dark = dark
        self.events = []
        self.folder = tempfile.mkdtemp(prefix="saltern-downloads-")
        self.context = chromium.call("Target.createBrowserContext")["browserContextId"]
        self.target = chromium.call("Target.createTarget", url="about:blank", browserContextId=self.context)["targetId"]
        self.session = chromium.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        chromium.pages[self.session] = self
        for domain in ("Page", "Runtime", "Log", "Network", "Audits", "Accessibility", "DOM"):
            self.call(f"{domain}.enable")
        chromium.call("Browser.setDownloadBehavior", behavior="allowAndName", downloadPath=self.folder,
                      eventsEnabled=True, browserContextId=self.context)
        agent = chromium.call("Browser.getVersion")["userAgent"].replace("Headless", "")
        self.call("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage=language)
        self.call("Emulation.setLocaleOverride", locale=language.split(",")[0].replace("-", "_"))
        self.call("Emulation.setTimezoneOverride", timezoneId="Europe/Berlin")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.emulate(self.dark)
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", value=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        del self.chromium.pages[self.session]
        self.chromium.call("Target.disposeBrowserContext", browserContextId=self.context)

    def call(self, method, **parameters):
        return self.chromium.call(method, self.session, **parameters)

    def emulate(self, dark):
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ])

    def empty(self):
        """As it was at first, but for its history."""
        self.go("about:blank")
        self.call("Network.clearBrowserCache")
        self.emulate(self.dark)
        # What it says of the page that it leaves comes before this.
        self.wait("document.readyState === 'complete' && location.href === 'about:blank'", "an empty page")
        self.events.clear()

    def go(self, url):
        result = self.call("Page.navigate", url=url)
        check("errorText" not in result, f"the page to load, not {result.get('errorText')}")

    def evaluate(self, expression):
        """The value of an expression, awaited when it is a promise."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        check("exceptionDetails" not in result, f"{expression} to have a value: {result.get('exceptionDetails')}")
        return result["result"].get("value")

    def wait(self, expression, what, meanwhile=lambda: True):
        """Until the expression is true."""
        def holds():
            try:
                return meanwhile() and self.evaluate(expression)
            except Refused:
                return False

        self.until(holds, lambda: f"{what}; the page says {self.text[:600]!r}")

    def until(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise Failure(f"expected {what() if callable(what) else what}")
            time.sleep(0.03)

    @property
    def text(self):
        """What a person can read in the main part."""
        return self.evaluate("document.querySelector('main')?.innerText ?? ''")

    def texts(self, selector):
        return self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)")

    def press(self, key, modifiers=0):
        """A key goes down and up."""
        codes = {"Tab": 9, "Enter": 13, " ": 32}
        text = {"Enter": "\r", " ": " "}.get(key, "")
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=codes[key],
                  modifiers=modifiers, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=codes[key],
                  modifiers=modifiers)

    def paste(self):
        """What is in the clipboard, pasted as a person does."""
        # Its name keeps the browser from an issue of its own about forms, which is not the page's.
        self.evaluate("""{
            const area = Object.assign(document.createElement("textarea"), { name: "pasted" });
            document.body.append(area);
            area.focus();
        }""")
        self.call("Input.dispatchKeyEvent", type="rawKeyDown", key="v", code="KeyV", windowsVirtualKeyCode=86, modifiers=2,
                  commands=["paste"])
        self.wait("document.querySelector('textarea').value !== ''", "something to be pasted")
        return self.evaluate("document.querySelector('textarea').value")

    def click(self, selector):
        """A click of the mouse in the middle of the element."""
        x, y = self.evaluate(f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            element.scrollIntoView({{ block: "center", behavior: "instant" }});
            const box = element.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];
        }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def downloaded(self):
        """Name and bytes of the one file that was saved."""
        def finished():
            # Whatever call: events arrive with its reply.
            self.evaluate("0")
            return any(download["state"] == "completed" for download in self.chromium.downloads.values())

        self.until(finished, "a file to be saved")
        (guid, download), = self.chromium.downloads.items()
        self.chromium.downloads.clear()
        with open(os.path.join(self.folder, guid), "rb") as file:
            return download["suggestedFilename"], file.read()

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def accessibility_tree(self):
        """What screen readers are told: (role, name, properties) of everything that is not ignored."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            (
                node["role"]["value"], node.get("name", {}).get("value", ""),
                {item["name"]: item["value"].get("value") for item in node.get("properties", [])},
            )
            for node in nodes if not node["ignored"]
        ]

    def headings(self):
        return [name for role, name, _ in self.accessibility_tree() if role == "heading"]

    def requested(self):
        """Method and address of everything that was asked for."""
        return [
            (event["request"]["method"], event["request"]["url"] + event["request"].get("urlFragment", ""))
            for method, event in self.events if method == "Network.requestWillBeSent"
        ]

    def complaints(self):
        """Errors and warnings of the console, exceptions, violations of the policy, and issues that the browser sees."""
        found = []
        for method, event in self.events:
            if method == "Log.entryAdded" and event["entry"]["level"] in ("warning", "error"):
                entry = event["entry"]
                found.append(f"{entry['source']}: {entry['text']} {entry.get('url', '')}")
            elif method == "Runtime.consoleAPICalled" and event["type"] in ("warning", "error", "assert"):
                found.append(f"console: {event['args']}")
            elif method == "Runtime.exceptionThrown":
                found.append(f"exception: {event['exceptionDetails']}")
            elif method == "Audits.issueAdded":
                found.append(f"issue: {event['issue']}")
        return found
