// Opens a share: asks how often it may be opened, fetches it, decrypts it, shows it.

import { contentOf } from "./content.js";
import { readAddress } from "./link.js";
import { openShare, Saltern, SalternError } from "./saltern.js";
import * as view from "./view.js";

const server = new Saltern(location.origin);
/** The envelope, once it was fetched: a corrected passphrase needs no second view. */
let fetched;
/** How often something was decrypted; only the last attempt is shown. */
let attempts = 0;

/** Looks without opening: HEAD counts nothing. */
async function look() {
  const { id, passphrase } = readAddress();
  if (!passphrase) return view.showMessage("no-key", "noKey");
  if (fetched) return decrypt(passphrase);
  view.showBusy("asking");
  let left;
  try {
    left = await server.viewsLeft(id);
  } catch (error) {
    return showProblem(error);
  }
  if (!left) return fetchAndOpen(id);
  view.showMessage("confirm", "confirm", {
    text: view.counted("confirm", left), button: "confirmButton", action: () => fetchAndOpen(id),
  });
}

async function fetchAndOpen(id) {
  view.showBusy("fetching");
  try {
    fetched = await server.fetchShare(id);
  } catch (error) {
    return showProblem(error);
  }
  await decrypt(readAddress().passphrase);
}

async function decrypt(passphrase) {
  attempts += 1;
  const attempt = attempts;
  let show;
  try {
    const content = contentOf(await openShare(fetched, passphrase, () => view.showBusy("decrypting")));
    show = () => view.showContent(content, notes(fetched));
  } catch (error) {
    show = () => showFailure(error);
  }
  if (attempt === attempts) show();
}

function showFailure(error) {
  if (!(error instanceof SalternError)) return view.showOutdated();
  if (error.code === "not_authentic") {
    const last = fetched.viewsLeft === 0 ? ` ${view.string("wrongKeyLast")}` : "";
    return view.showMessage("wrong-key", "wrongKey", { text: view.string("wrongKeyText") + last });
  }
  if (error.code === "unknown_format") return view.showMessage("unknown-format", "format");
  return view.showMessage("damaged", "damaged");
}

/** Tells the person why there is no reply of success. */
function showProblem({ code, status, retryAfter = 60, requestId = "–" }) {
  const again = { button: "retry", action: look };
  if (code === "unreachable") return view.showMessage("network", "network", again);
  if (status === 429) {
    const text = view.string("limitedText", { seconds: retryAfter });
    return view.showMessage("limited", "limited", { ...again, text });
  }
  if (status >= 500) {
    const text = view.string("serverText", { request: requestId });
    return view.showMessage("server", "server", { ...again, text });
  }
  return status === 0 ? view.showMessage("damaged", "damaged") : view.showMessage("gone", "gone");
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
  // The person has corrected the passphrase in the address bar.
  addEventListener("hashchange", look);
  // A page that the browser has made ready in case somebody wants to see it waits until somebody does.
  if (document.prerendering) document.addEventListener("prerenderingchange", look, { once: true });
  else look();
} else {
  view.showOutdated();
}
