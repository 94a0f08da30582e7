// Shows the page's contents. Shared text stays text and is never parsed as HTML.

const main = document.querySelector("main");
const heading = document.querySelector("h1");
const content = document.getElementById("content");
const status = document.getElementById("status");
const outdated = document.getElementById("outdated");
const strings = JSON.parse(document.getElementById("strings").textContent);
const title = heading.textContent;

/** Returns the string of that name with {members} of `values` inserted. */
export function string(name, values = {}) {
  return strings[name].replace(/\{(\w+)\}/g, (_, key) => values[key]);
}

/** Returns the form of a string for a count: nameNone (if it exists), nameOne, nameMany. */
export function counted(name, count) {
  const form = count === 0 ? "None" : count === 1 ? "One" : "Many";
  return string(name + form, { count: new Intl.NumberFormat(document.documentElement.lang).format(count) });
}

/** Shows progress, announced to screen readers. The rest of the page stays unchanged. */
export function showBusy(name) {
  main.dataset.state = "busy";
  main.setAttribute("aria-busy", "true");
  content.replaceChildren();
  say(string(name));
}

/** Announces text to screen readers, and shows it unless it is visible elsewhere. */
function say(text, { isSeen = true } = {}) {
  status.className = isSeen ? "" : "spoken";
  status.textContent = text;
}

/** Shows a message, with a button if there is an action. */
export function showMessage(state, name, { text = string(name + "Text"), button, action } = {}) {
  const parts = [element("p", { textContent: text })];
  if (button) parts.push(actionButton(string(button), action));
  show(state, string(name + "Title"), ...parts);
}

/** Shows the notice for browsers that cannot decrypt, which is part of the page. */
export function showOutdated() {
  outdated.hidden = false;
  show("outdated", title, outdated);
}

/** Shows the shared content, and notes on the link. */
export function showContent({ text, fields, file }, notes) {
  const parts = file ? fileParts(file) : fields ? [fieldTable(fields)] : textParts(text);
  show("open", file ? string("fileTitle") : title, ...parts, ...notes.map(note));
}

function show(state, name, ...parts) {
  main.dataset.state = state;
  main.removeAttribute("aria-busy");
  say("");
  heading.textContent = name;
  content.replaceChildren(...parts);
  // Screen readers announce the content, and the next Tab is in it.
  heading.focus();
}

function textParts(text) {
  if (!text) return [element("p", { textContent: string("empty") })];
  const box = element("pre", { dir: "auto", tabIndex: 0 }, ...linked(text));
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", string("text"));
  return [box, copyButton(box, text, string("copy"))];
}

/** The maximum length of a linked address in UTF-16 units, and of links in a text. */
const addressLimit = 2048;
const linkLimit = 1000;

/**
 * Returns the text with links for web addresses that show their target: without user name, and with a plain host.
 * The time is linear in the text: no expression here backtracks from each of many positions.
 */
function linked(text) {
  const parts = [];
  let end = 0;
  for (const { 0: found, index } of text.matchAll(/https?:\/\/[^\s\p{C}<>"'`]+/giu)) {
    if (parts.length >= 2 * linkLimit) break;
    let address = withoutEnd(found, ".,;:!?");
    if (!address.includes("(")) address = withoutEnd(address, ")");
    if (address.length > addressLimit || !leadsWhereItSays(address)) continue;
    parts.push(text.slice(end, index));
    parts.push(element("a", { href: address, textContent: address, target: "_blank", rel: "noopener noreferrer" }));
    end = index + address.length;
  }
  return [...parts, text.slice(end)];
}

/** Returns the text without these characters at its end. */
function withoutEnd(text, characters) {
  let end = text.length;
  while (end > 0 && characters.includes(text[end - 1])) end -= 1;
  return text.slice(0, end);
}

function leadsWhereItSays(address) {
  try {
    const { origin } = new URL(address);
    return address.toLowerCase().startsWith(origin) && /^([/?#:]|$)/.test(address.slice(origin.length));
  } catch {
    return false;
  }
}

// The roles repeat those of a table, because on a narrow screen the layout differs.
function fieldTable(fields) {
  const body = element("tbody", {}, ...fields.map(({ name, value }) => {
    const label = element("bdi", { textContent: name });
    const box = element("span", { dir: "auto" }, ...linked(value));
    const buttons = [copyButton(box, value, string("copyName", { name }))];
    if (isSecret(name)) buttons.unshift(hideButton(box, value, name));
    return withRole("row", element("tr", {},
      withRole("rowheader", element("th", { scope: "row" }, label)),
      withRole("cell", element("td", {}, box)),
      withRole("cell", element("td", {}, ...buttons))));
  }));
  const table = withRole("table", element("table", {}, withRole("rowgroup", body)));
  table.setAttribute("aria-label", string("fields"));
  return table;
}

/** Returns true if the name of a field indicates a secret. */
function isSecret(name) {
  return /pass(wor[dt]|phrase|code)|kennwort|secret|geheim|token|\b(pin|puk|cvc|cvv)\b/i.test(name);
}

function hideButton(box, value, name) {
  let isHidden = false;
  const button = actionButton(string("hide"), () => {
    isHidden = !isHidden;
    box.replaceChildren(...(isHidden ? ["•".repeat(8)] : linked(value)));
    button.textContent = string(isHidden ? "show" : "hide");
    button.setAttribute("aria-label", string(isHidden ? "showName" : "hideName", { name }));
  });
  button.className = "copy";
  button.setAttribute("aria-label", string("hideName", { name }));
  return button;
}

// The type is always bytes: the browser saves the file and never shows it as part of this site.
function fileParts({ name, type, bytes }) {
  const link = element("a", { textContent: string("save"), download: name, className: "button" });
  link.href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  return [
    element("p", { className: "file" }, element("bdi", { textContent: name }),
      element("span", { textContent: `${size(bytes.length)}${type && " · "}${type}` })),
    element("p", { textContent: string("fileText") }), link,
  ];
}

function size(count) {
  const units = ["byte", "kilobyte", "megabyte"];
  const power = Math.min(Math.floor(Math.log10(Math.max(count, 1)) / 3), 2);
  return new Intl.NumberFormat(document.documentElement.lang, {
    style: "unit", unit: units[power], unitDisplay: power ? "short" : "long", maximumFractionDigits: 1,
  }).format(count / 1000 ** power);
}

function note(text) {
  return element("p", { textContent: text, className: "note" });
}

function copyButton(box, value, label) {
  const button = actionButton(string("copy"), async () => {
    try {
      await navigator.clipboard.writeText(value);
    } catch {
      box.replaceChildren(...linked(value));
      getSelection().selectAllChildren(box);
      say(string("copyFailed"));
      return;
    }
    say(string("copied"), { isSeen: false });
    button.textContent = string("copied");
    clearTimeout(Number(button.dataset.timer));
    button.dataset.timer = setTimeout(() => {
      button.textContent = string("copy");
      say("");
    }, 2500);
  });
  button.className = "copy";
  button.setAttribute("aria-label", label);
  return button;
}

function actionButton(label, action) {
  const button = element("button", { type: "button", textContent: label });
  button.addEventListener("click", action);
  return button;
}

function withRole(role, node) {
  node.setAttribute("role", role);
  return node;
}

function element(name, properties, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}
