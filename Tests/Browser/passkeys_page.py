"""The browser code of docs/passkeys.md in Chromium, with a virtual authenticator that has PRF. Called by
Tests/Integration/passkeys.sh.

The page is at http://localhost, because Chromium refuses credentials where the certificate has errors. Its server passes
requests for the API on.
"""

import base64
import http.client
import http.server
import json
import os
import pathlib
import re
import ssl
import sys
import threading
import urllib.parse

from chromium import Chromium, Failure, Page, check

ROOT = pathlib.Path(__file__).parents[2]
URL = urllib.parse.urlsplit(os.environ["SALTERN_TEST_URL"])
PORT = int(os.environ["SALTERN_TEST_PAGE_PORT"])
FILES = ["clients/web/saltern.js", "clients/web/passkeys.js", "Tests/Web/passkeys_setup.js"]


class Site:
    """The page, its scripts, and the API of the server. Keeps what browsers send to the API."""

    def __init__(self, certificate):
        self.sent = []
        self.files = {"/" + name: (ROOT / name).read_bytes() for name in FILES}
        document = (ROOT / "docs/passkeys.md").read_text()
        code = "\n".join(re.findall(r"^```js\n(.*?)^```$", document, re.MULTILINE | re.DOTALL))
        self.files["/clients/web/document.js"] = code.encode()
        self.context = ssl.create_default_context(cafile=certificate)
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                if self.path.startswith("/v1/"):
                    self.pass_on()
                    return
                content = site.files.get(self.path)
                page = b"<!doctype html><title>Passkeys</title><link rel=icon href=data:,><main></main>"
                self.reply(200, "text/javascript" if content else "text/html", content or page)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                site.sent += [str(self.headers).encode(), body]
                names = ["Authorization", "Content-Type", "Passkey-Assertion", "If-None-Match"]
                fields = {name: self.headers[name] for name in names if self.headers[name]}
                server = http.client.HTTPSConnection(URL.hostname, URL.port, context=site.context, timeout=60)
                server.request(self.command, self.path, body or None, fields)
                answer = server.getresponse()
                self.reply(answer.status, answer.headers["Content-Type"], answer.read())
                server.close()

            def reply(self, status, kind, content):
                self.send_response(status)
                if kind:
                    self.send_header("Content-Type", kind)
                if status != 204:
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if status != 204:
                    self.wfile.write(content)

            def log_message(self, format, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def add_authenticator(page):
    page.call("WebAuthn.enable")
    return page.call("WebAuthn.addVirtualAuthenticator", options={
        "protocol": "ctap2", "ctap2Version": "ctap2_1", "transport": "internal", "hasResidentKey": True,
        "hasUserVerification": True, "isUserVerified": True, "hasPrf": True, "automaticPresenceSimulation": True,
    })["authenticatorId"]


def run(page, code):
    """The value of statements that return one, in the module of the document."""
    return page.evaluate(f"""(async () => {{
        const [document_, setup, saltern, passkeys] = await Promise.all([
            import("/clients/web/document.js"), import("/Tests/Web/passkeys_setup.js"),
            import("/clients/web/saltern.js"), import("/clients/web/passkeys.js")]);
        const account = {json.dumps(ACCOUNT)};
        const fields = {{ Authorization: `Bearer ${{account.token}}` }};
        {code}
    }})()""")


ACCOUNT = {name: os.environ[f"SALTERN_TEST_{name.upper()}"] for name in ("id", "userid", "key", "token")}

# The PRF output of the passkey, a keyring, and the box. The page keeps what has to be on no wire.
UNLOCK = """
    const id = saltern.fromBase64(added.id.replaceAll("-", "+").replaceAll("_", "/"));
    const publicKey = { challenge: new Uint8Array(32), userVerification: "required",
        allowCredentials: [{ type: "public-key", id }], extensions: { prf: { eval: { first: passkeys.prfInput } } } };
    const assertion = await navigator.credentials.get({ publicKey });
    const output = assertion.getClientExtensionResults().prf.results.first;
    const kept = saltern.toBase64(new Uint8Array(output));
    const unlockKey = crypto.getRandomValues(new Uint8Array(32));
    const { passkey, sealedPrivateKey, box } = await setup.makeUnlock(account.id, id, output, unlockKey);
    const keyring = await setup.makeKeyring(unlockKey, passkey);
    const put = (path, body, more) => fetch(path, { method: "PUT", body: JSON.stringify(body),
        headers: { "Content-Type": "application/json", ...fields, ...more } }).then((reply) => reply.status);
    const stored = await put("/v1/account/keyring", { keyring }, { "If-None-Match": "*" });
    const unlocks = await put(`/v1/account/passkeys/${added.id}/box`,
        { currentPasswordKey: account.key, sealedPrivateKey, box });
    return { stored, unlocks, output: kept, unlockKey: saltern.toBase64(unlockKey) };
"""


def check_journey(page, site):
    added = run(page, 'return document_.addPasskey(fields, account.key, "Chromium", true)')
    check(added["ok"] and added["logsIn"] and added["algorithm"] == -7, f"a passkey, not {added}")
    set_up = run(page, f"const added = {json.dumps(added)}; {UNLOCK}")
    check(set_up["stored"] in (200, 201, 204) and set_up["unlocks"] == 204, f"an unlock box, not {set_up}")
    second = run(page, "return document_.logIn(account.userid, account.key)")
    check(second["ok"] and second["session"]["token"], f"a log-in with the second factor, not {second}")
    alone = run(page, """
        const { login, keyring } = await document_.logInWithPasskey();
        return { id: login.accountId, keys: keyring?.keys.length, counter: String(keyring?.counter) };
    """)
    check(alone == {"id": ACCOUNT["id"], "keys": 1, "counter": "1"}, f"an open keyring, not {alone}")
    export = run(page, "return document_.exportAccount(fields)")
    check(export["ok"] and '"type":"end"' in export["text"], f"a whole export, not {str(export)[:300]}")
    refused = run(page, """
        return document_.prove(fields, "exportAccount", "DELETE", "/v1/account", "{}");
    """)
    check(refused.get("code") == "wrong_passkey", f"another request to be refused, not {refused}")
    sent = b"\n".join(site.sent)
    check(b"clientExtensionResults" in sent, "credentials on the wire")
    for secret in (set_up["output"], set_up["unlockKey"]):
        check(len(base64.b64decode(secret)) == 32, "32 secret bytes")
        plain = secret.rstrip("=")
        for form in (plain, plain.replace("+", "-").replace("/", "_")):
            check(form.encode() not in sent, "no PRF output and no unlock key on the wire")
    # The browser reports the two refusals of the journey.
    complaints = [text for text in page.complaints() if not re.search(r"status of (401|403) .*/v1/(sessions|account)", text)]
    check(not complaints, f"no complaint of the browser: {complaints}")


def main():
    site = Site(os.environ["SALTERN_TEST_CERTIFICATE"])
    chromium = Chromium("")
    try:
        with Page(chromium) as page:
            add_authenticator(page)
            page.go(f"http://localhost:{PORT}/")
            page.wait("location.origin !== 'null' && document.readyState === 'complete'", "the page")
            check_journey(page, site)
    finally:
        chromium.close()


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(str(failure))
