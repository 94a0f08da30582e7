// Opens a share: reads its number of views, fetches, decrypts and shows it.

import { contentOf } from "./content.js";
import { DamagedEnvelope, open, UnknownFormat, WrongKey } from "./envelope.js";
import { readLink } from "./link.js";
import * as view from "./view.js";

/** The fetched envelope: a corrected passphrase needs no second view. */
let fetched;
/** The number of decryptions. Only the last one is shown. */
let attempts = 0;

/** Checks the share without a view: HEAD counts none. */
async function look() {
  const { id, passphrase } = readLink();
  if (!passphrase) return view.showMessage("no-key", "noKey");
  if (fetched) return decrypt(passphrase);
  view.showBusy("asking");
  const reply = await ask("HEAD", id, look);
  if (!reply) return;
  const left = Number(reply.headers.get("Saltern-Views-Left"));
  if (!left) return fetchAndOpen(id);
  view.showMessage("confirm", "confirm", {
    text: view.counted("confirm", left), button: "confirmButton", action: () => fetchAndOpen(id),
  });
}

async function fetchAndOpen(id) {
  view.showBusy("fetching");
  const reply = await ask("GET", id, look);
  if (!reply) return;
  try {
    fetched = await reply.json();
  } catch (error) {
    if (error instanceof SyntaxError) return view.showMessage("damaged", "damaged");
    return view.showMessage("network", "network", { button: "retry", action: look });
  }
  await decrypt(readLink().passphrase);
}

async function decrypt(passphrase) {
  attempts += 1;
  const attempt = attempts;
  let show;
  try {
    const content = contentOf(await open(fetched, passphrase, () => view.showBusy("decrypting")));
    show = () => view.showContent(content, notes(fetched));
  } catch (error) {
    show = () => showFailure(error);
  }
  if (attempt === attempts) show();
}

function showFailure(error) {
  if (error instanceof WrongKey) {
    const last = fetched.viewsLeft === 0 ? ` ${view.string("wrongKeyLast")}` : "";
    return view.showMessage("wrong-key", "wrongKey", { text: view.string("wrongKeyText") + last });
  }
  if (error instanceof UnknownFormat) return view.showMessage("unknown-format", "format");
  if (error instanceof DamagedEnvelope) return view.showMessage("damaged", "damaged");
  return view.showOutdated();
}

/** Returns a successful reply, or shows the reason and returns undefined. */
async function ask(method, id, retry) {
  let reply;
  try {
    reply = await fetch(`/v1/shares/${id}`, {
      method, cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
    });
  } catch {
    view.showMessage("network", "network", { button: "retry", action: retry });
    return undefined;
  }
  if (reply.ok) return reply;
  if (reply.status === 429) {
    const seconds = reply.headers.get("Retry-After") ?? "60";
    view.showMessage("limited", "limited", {
      text: view.string("limitedText", { seconds }), button: "retry", action: retry,
    });
  } else if (reply.status >= 500) {
    const request = reply.headers.get("X-Request-Id") ?? "–";
    view.showMessage("server", "server", {
      text: view.string("serverText", { request }), button: "retry", action: retry,
    });
  } else {
    view.showMessage("gone", "gone");
  }
  return undefined;
}

function notes({ viewsLeft, expiresAt }) {
  const notes = [];
  if (Number.isSafeInteger(viewsLeft)) notes.push(view.counted("left", viewsLeft));
  const time = new Date(expiresAt ?? NaN);
  if (!isNaN(time)) {
    const format = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "long", timeStyle: "short" });
    notes.push(view.string("expires", { time: format.format(time) }));
  }
  return notes;
}

if (globalThis.crypto?.subtle && "replaceChildren" in Element.prototype) {
  // The passphrase was corrected in the address bar.
  addEventListener("hashchange", look);
  // A prerendered page waits until it is shown.
  if (document.prerendering) document.addEventListener("prerenderingchange", look, { once: true });
  else look();
} else {
  view.showOutdated();
}
