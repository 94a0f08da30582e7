// @ts-check
// A client of Saltern for web pages, by docs/protocol.md and docs/api-guide.md. It uses WebCrypto and nothing else.
// docs/web.md explains its use. The page that opens shares contains it, too, so its syntax is that of ES2020.

/** @typedef {Uint8Array<ArrayBuffer>} Bytes */
/** @typedef {{id: string, key: CryptoKey}} DataKey A key that seals items, and its key id in base64. */
/** @typedef {{counter: bigint, keys: DataKey[], digest: string}} Keyring The last key seals. */
/** @typedef {{number: bigint, previous: Bytes}} Edit The edit number, and SHA-256 of the previous sealed body. */
/** @typedef {keyof typeof parts} Part */
/** @typedef {{part: Part, account: string, item: string, collection: string}} Place The only place where it opens. */
/** @typedef {{id: string, revision: number, collection: string, createdAt: string, updatedAt: string,
 * deleted: boolean}} Header An item without content. A deleted one is a tombstone. */
/** @typedef {Header & {format?: string, title?: string, body?: string}} ItemState An item of the API, sealed. */
/** @typedef {{title?: string, body?: Bytes, edit?: bigint, digest?: Bytes}} Content With the sealed body's digest. */
/** @typedef {Header & Content & {error?: SalternError}} Item An opened item, or an error instead of its content. */
/** @typedef {{id?: string, revision?: number, deleted?: boolean, collection: string, title?: string,
 * body: string | Bytes, edit?: bigint, digest?: Bytes}} NewItem A new item, or an opened one with other content. */
/** @typedef {{id: string, headers: Record<string, string>, body: object, content: Content}} SealedItem */
/** @typedef {{format: string, salt: string, iterations: number, sealed: string, viewsLeft?: number,
 * expiresAt?: string}} Envelope A sealed share. */
/** @typedef {{body?: unknown, headers?: Record<string, string>, token?: string, again?: boolean}} CallOptions The body
 * becomes JSON. `again` permits to send the request again after a lost reply; by default all but POST. */

/** An error of the server or of this module. Decide by `code`, and for an unknown one by `status`. */
export class SalternError extends Error {
  /** @param {string} code A code of the API, or of docs/web.md. @param {string} message Contains no secret.
   * @param {{status?: number, problem?: any, retryAfter?: number, requestId?: string}} [details] */
  constructor(code, message, { status = 0, problem, retryAfter, requestId } = {}) {
    super(message);
    this.name = "SalternError";
    this.code = code;
    this.status = status;
    this.problem = problem;
    this.retryAfter = retryAfter;
    this.requestId = requestId;
    /** @type {Item | null | undefined} After `precondition_failed`: the item on the server. */
    this.current = undefined;
  }
}

// MARK: Bytes
const parts = Object.freeze({ title: 1, body: 2, chunk: 3, keyring: 4, recovery: 5, passkey: 6 });
const encoder = new TextEncoder();
/** @param {Bytes} bytes */
const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
/** @param {string | Bytes} content */
const bytesOf = (content) => (typeof content === "string" ? encoder.encode(content) : content);
/** @param {unknown} text */
const bytesOfBase64 = (text) => fromBase64(text) ?? new Uint8Array();

/** @param {(string | Bytes | number[] | ArrayBuffer)[]} pieces */
function joined(...pieces) {
  const arrays = pieces.map((piece) => (typeof piece === "string" ? encoder.encode(piece) : new Uint8Array(piece)));
  const bytes = new Uint8Array(arrays.reduce((sum, { length }) => sum + length, 0));
  arrays.reduce((offset, array) => (bytes.set(array, offset), offset + array.length), 0);
  return bytes;
}

/** @param {Bytes} bytes */
export const toBase64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));

/** Returns the bytes of base64, and undefined for anything else. @param {unknown} text @returns {Bytes | undefined} */
export function fromBase64(text) {
  try {
    const binary = atob(typeof text === "string" ? text : "*");
    return new Uint8Array(binary.length).map((_, index) => binary.charCodeAt(index));
  } catch {
    return undefined;
  }
}

/** @param {string} id */
function idBytes(id) {
  const isId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id);
  if (!isId) throw new SalternError("invalid_id", "An id is not a UUID.");
  return Uint8Array.from(id.replace(/-/g, "").match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

// MARK: Keys
/** @param {string | Bytes} info */
const hkdf = (info) => ({ name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info: bytesOf(info) });

/** Makes a key that cannot be exported, and overwrites the bytes. @param {Bytes} bytes @param {string} algorithm */
async function secretKey(bytes, algorithm) {
  const key = await crypto.subtle.importKey("raw", bytes, algorithm, false, ["deriveBits", "deriveKey"]);
  bytes.fill(0);
  return key;
}

/** Imports the 32 bytes of a data key, and overwrites them. @param {Bytes} bytes @returns {Promise<DataKey>} */
export async function dataKey(bytes) {
  const key = await secretKey(bytes, "HKDF");
  return { id: toBase64(new Uint8Array(await crypto.subtle.deriveBits(hkdf("saltern-1 key id"), key, 32))), key };
}

/** Derives both keys of a password. The unlock key cannot be exported.
 * @param {string} password @param {string} salt The salt prefix and the userid. @param {number} iterations */
export async function stretch(password, salt, iterations) {
  const material = await secretKey(encoder.encode(password.normalize("NFC")), "PBKDF2");
  const parameters = { name: "PBKDF2", hash: "SHA-256", salt: encoder.encode(salt), iterations };
  const derived = new Uint8Array(await crypto.subtle.deriveBits(parameters, material, 512));
  return { passwordKey: derived.subarray(0, 32), unlockKey: await secretKey(derived.subarray(32), "HKDF") };
}

/** @param {AesGcmParams} parameters @param {CryptoKey} key @param {Bytes} sealed */
async function decrypt(parameters, key, sealed) {
  const failed = () => { throw new SalternError("not_authentic", "The key is wrong, or the content was changed."); };
  return new Uint8Array(await crypto.subtle.decrypt(parameters, key, sealed).catch(failed));
}

// MARK: The format saltern-1
/** @param {DataKey} key @param {Place} place */
function partKey({ key }, { part, item }) {
  const info = joined("saltern-1 item key", [parts[part]], idBytes(item));
  return crypto.subtle.deriveKey(hkdf(info), key, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
}

/** @param {Place} place @param {Bytes} nonce */
function gcm({ part, account, item, collection }, nonce) {
  const name = encoder.encode(collection);
  const place = [idBytes(account), idBytes(item), [name.length >> 8, name.length & 255], name];
  return { name: "AES-GCM", iv: nonce, additionalData: joined("saltern-1", [1, parts[part]], ...place) };
}

/** @param {number} length */
function paddedLength(length) {
  const exponent = 31 - Math.clz32(length);
  const unit = length > 1024 ? 2 ** (exponent - (32 - Math.clz32(exponent))) : 64;
  return Math.ceil(length / unit) * unit;
}

/** Seals a part of an edit. @param {Bytes} content @param {Edit} edit @param {Place} place @param {DataKey} key */
export async function sealPart(content, edit, place, key) {
  const plaintext = new Uint8Array(paddedLength(44 + content.length));
  const view = new DataView(plaintext.buffer);
  view.setUint32(0, content.length);
  view.setBigUint64(4, edit.number);
  plaintext.set(edit.previous, 12);
  plaintext.set(content, 44);
  const nonce = crypto.getRandomValues(new Uint8Array(12));
  const ciphertext = await crypto.subtle.encrypt(gcm(place, nonce), await partKey(key, place), plaintext);
  return joined([1], bytesOfBase64(key.id), nonce, ciphertext);
}

/** Opens a part, if it belongs to this place. @param {Bytes} sealed @param {Place} place @param {DataKey[]} keys
 * @throws {SalternError} `malformed_sealed_bytes`, `unknown_key`, `not_authentic`. */
export async function openPart(sealed, place, keys) {
  const malformed = () => new SalternError("malformed_sealed_bytes", "These bytes are not of the format saltern-1.");
  if (sealed.length < 97 || sealed[0] !== 1) throw malformed();
  const id = toBase64(sealed.subarray(1, 5));
  const key = keys.find((candidate) => candidate.id === id);
  if (!key) throw new SalternError("unknown_key", "The keyring has no key for these bytes.", { problem: { id } });
  const plaintext = await decrypt(gcm(place, sealed.slice(5, 17)), await partKey(key, place), sealed.subarray(17));
  const view = new DataView(plaintext.buffer);
  const end = 44 + view.getUint32(0);
  if (plaintext.length !== paddedLength(end) || plaintext.subarray(end).some((byte) => byte !== 0)) throw malformed();
  return { content: plaintext.slice(44, end), number: view.getBigUint64(4), previous: plaintext.slice(12, 44) };
}

/** Opens a keyring. Its keys cannot be exported. @param {Bytes} sealed @param {CryptoKey} unlockKey
 * @returns {Promise<Keyring>} @throws {SalternError} `keyring_unusable`. */
export async function openKeyring(sealed, unlockKey) {
  const derived = await crypto.subtle.deriveBits(hkdf("saltern-1 keyring key"), unlockKey, 256);
  const zeros = "00000000-0000-0000-0000-000000000000";
  try {
    const keyringKey = await dataKey(new Uint8Array(derived));
    const { content, number } = await openPart(
      sealed, { part: "keyring", account: zeros, item: zeros, collection: "" }, [keyringKey]);
    const view = new DataView(content.buffer);
    const end = 43 + 32 * view.getUint16(41);
    let length = end + 1 + (view.getUint8(end) === 1 ? 99 + view.getUint16(end + 98) : 0);
    if (content[0] === 2) for (let n = view.getUint8(length++); n > 0; n--) length += 99 + view.getUint16(length);
    const isWhole = content[0] >= 1 && content[0] <= 2 && end > 43 && content[end] <= 1 && content.length === length;
    if (!isWhole || view.getBigUint64(1) !== number) throw new RangeError();
    const digest = toBase64(await sha256(content));
    const keys = [];
    for (let i = 43; i < end; i += 32) keys.push(await dataKey(content.subarray(i, i + 32)));
    content.fill(0);
    return { counter: number, keys, digest };
  } catch {
    throw new SalternError("keyring_unusable", "The password does not open the keyring.");
  }
}

/** @param {Keyring} known @param {Keyring} next */
function successor(known, next) {
  const isRetired = known.keys.slice(0, -1).some(({ id }) => id === next.keys[next.keys.length - 1].id);
  const isNewer = next.counter > known.counter || (next.counter === known.counter && next.digest === known.digest);
  if (isNewer && !isRetired) return next;
  throw new SalternError("keyring_replaced", "The server returned an older keyring.");
}

// MARK: Shares
const nonceLengths = new Map([["aes-256-gcm", 12], ["aes-256-gcm-iv16", 16]]);
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** @param {string} passphrase @param {Bytes} salt @param {number} iterations */
async function shareKey(passphrase, salt, iterations) {
  const material = await secretKey(encoder.encode(passphrase), "PBKDF2");
  const parameters = { name: "PBKDF2", hash: "SHA-256", salt, iterations };
  return crypto.subtle.deriveKey(parameters, material, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
}

/** Seals a share under a random passphrase of 128 bits. @param {string | Bytes} content */
export async function sealShare(content) {
  let passphrase = "";
  while (passphrase.length < 22) {
    const [byte] = crypto.getRandomValues(new Uint8Array(1));
    if (byte < 248) passphrase += alphabet[byte % 62];
  }
  const [salt, iv] = [16, 12].map((length) => crypto.getRandomValues(new Uint8Array(length)));
  const key = await shareKey(passphrase, salt, 10_000);
  const sealed = toBase64(joined(iv, await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, bytesOf(content))));
  return { passphrase, envelope: { format: "aes-256-gcm", salt: toBase64(salt), iterations: 10_000, sealed } };
}

/** Opens a share. Calls `working` before the slow part.
 * @param {Envelope} envelope @param {string} passphrase @param {() => void} [working]
 * @throws {SalternError} `unknown_format`, `malformed_sealed_bytes`, `not_authentic`. */
export async function openShare(envelope, passphrase, working) {
  const { format, iterations, ...texts } = envelope ?? {};
  const nonceLength = nonceLengths.get(format) ?? 0;
  if (typeof format === "string" && !nonceLength) throw new SalternError("unknown_format", "An app opens this format.");
  const [salt, sealed] = [fromBase64(texts.salt), fromBase64(texts.sealed)];
  const isUsable = nonceLength && Number.isSafeInteger(iterations) && iterations >= 1 && iterations <= 10_000_000;
  if (!isUsable || !salt || salt.length < 8 || !sealed || sealed.length < nonceLength + 16) {
    throw new SalternError("malformed_sealed_bytes", "The share is damaged.");
  }
  working?.();
  const key = await shareKey(passphrase, salt, iterations);
  return decrypt({ name: "AES-GCM", iv: sealed.slice(0, nonceLength) }, key, sealed.subarray(nonceLength));
}

/** Reads /s/ID#PASSPHRASE, or the legacy form /s/ID/PASSPHRASE. @param {string} link */
export function readLink(link) {
  const { pathname, hash } = new URL(link);
  const [, , id = "", legacy] = pathname.split("/");
  const encoded = legacy || hash.slice(1);
  try {
    return { id, encoded, passphrase: decodeURIComponent(encoded) };
  } catch {
    return { id, encoded, passphrase: encoded };
  }
}

// MARK: Requests
/** @param {unknown} error @param {string[]} codes @returns {error is SalternError} */
const hasCode = (error, ...codes) => error instanceof SalternError && codes.includes(error.code);
/** @param {unknown} error @returns {error is SalternError} */
const isPassing = (error) => error instanceof SalternError &&
  (error.code === "unreachable" || [408, 429, 500, 502, 503, 504].includes(error.status));
/** @param {string} message */
const unreachable = (message) => () => { throw new SalternError("unreachable", message); };
/** @param {number} milliseconds */
const sleep = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

/** Returns a reply of success. @param {string} url @param {RequestInit} init */
async function exchange(url, init) {
  /** @type {RequestInit} */
  const rules = { cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" };
  const reply = await fetch(url, { ...rules, ...init }).catch(unreachable("The server cannot be reached."));
  if (reply.ok) return reply;
  const problem = await reply.json().catch(() => undefined);
  const code = typeof problem?.code === "string" ? problem.code : "unexpected_reply";
  const retryAfter = Number(reply.headers.get("Retry-After")) || undefined;
  const requestId = reply.headers.get("X-Request-Id") ?? problem?.requestId;
  const message = problem?.detail ?? `The server returned ${reply.status}.`;
  throw new SalternError(code, message, { status: reply.status, problem, retryAfter, requestId });
}

/** @param {string} id */
const itemPath = (id) => idBytes(id) && `/v1/items/${id}`;
/** @param {string} path @param {object} members */
const query = (path, members) => `${path}?${new URLSearchParams(JSON.parse(JSON.stringify(members)))}`;

/** A server. */
export class Saltern {
  /** @param {string} url Its origin. @param {{saltPrefix?: string, minimumIterations?: number}} [rules] For log-ins.
   * Ship the salt prefix with the page. */
  constructor(url, { saltPrefix = "", minimumIterations = 600_000 } = {}) {
    this.origin = new URL(url).origin;
    this.rules = { saltPrefix, minimumIterations };
  }

  /** Sends a request. @param {string} method @param {string} path @param {CallOptions} [options]
   * @returns {Promise<any>} The JSON of the reply. */
  async call(method, path, { body, headers = {}, token, again = method !== "POST" } = {}) {
    const fields = new Headers(headers);
    if (token) fields.set("Authorization", `Bearer ${token}`);
    if (body !== undefined) fields.set("Content-Type", "application/json");
    for (let wait = 500; ; wait *= 2) {
      try {
        const reply = await exchange(this.origin + path, { method, headers: fields, body: JSON.stringify(body) });
        const text = await reply.text().catch(unreachable("The reply was cut off."));
        return text && JSON.parse(text);
      } catch (error) {
        if (error instanceof SyntaxError) throw new SalternError("unexpected_reply", "The reply is not JSON.");
        const asked = isPassing(error) ? error.retryAfter ?? 0 : Infinity;
        if (!again || wait > 2000 || asked > 60) throw error;
        await sleep(asked * 1000 + wait * (1 + Math.random()));
      }
    }
  }

  /** Returns the canonical userid, and its iterations. @param {string} typed
   * @returns {Promise<{userid: string, iterations: number}>} */
  async parameters(typed) {
    const { saltPrefix, minimumIterations } = this.rules;
    const ask = async (/** @type {string} */ userid) =>
      ({ ...await this.call("POST", "/v1/kdf", { body: { userid }, again: true }), userid });
    const reply = await ask(typed).catch((error) => {
      if (hasCode(error, "userid_not_canonical")) return ask(error.problem.canonical);
      throw error;
    });
    const isAlike = reply.algorithm === "PBKDF2-HMAC-SHA256" && reply.saltPrefix === saltPrefix && saltPrefix !== "";
    if (isAlike && reply.iterations >= minimumIterations && reply.iterations <= 10_000_000) return reply;
    const code = reply.iterations > 10_000_000 ? "excessive_kdf" : "weak_kdf";
    throw new SalternError(code, "The server asks for another key derivation than this page accepts.");
  }

  /** Logs in, and opens the keyring. @param {string} userid @param {string} password
   * @param {{totp?: (error: SalternError) => string | null | Promise<string | null>, device?: {name?: string,
   * token?: string}}} [options] `totp` returns a code, or null to give up. The token is that of the last log-in. */
  async logIn(userid, password, { totp, device } = {}) {
    const known = await this.parameters(userid);
    const { passwordKey, unlockKey } = await stretch(password, this.rules.saltPrefix + known.userid, known.iterations);
    const request = { userid: known.userid, passwordKey: toBase64(passwordKey), device };
    passwordKey.fill(0);
    for (let code; ;) {
      try {
        const login = await this.call("POST", "/v1/sessions", { body: { ...request, totp: code } });
        return await openAccount(this, login, unlockKey);
      } catch (error) {
        code = totp && hasCode(error, "totp_required", "wrong_totp") ? await totp(error) : null;
        if (!code) throw error;
      }
    }
  }

  /** Returns the views that a limited share has left. Uses no view. @param {string} id */
  async viewsLeft(id) {
    const reply = await exchange(`${this.origin}/v1/shares/${id}`, { method: "HEAD" });
    return Number(reply.headers.get("Saltern-Views-Left")) || undefined;
  }

  /** Uses a view. @param {string} id @returns {Promise<Envelope>} */
  fetchShare(id) { return this.call("GET", `/v1/shares/${id}`, { again: false }); }
}

/** @typedef {Awaited<ReturnType<typeof openAccount>>} Account */
/** Returns the functions of an account. Its token and keys are no properties of the result.
 * @param {Saltern} server @param {{accountId: string, deviceToken: string, keyring?: string, session: {token: string}}}
 * login @param {CryptoKey} unlockKey */
async function openAccount(server, { accountId: account, deviceToken, keyring: text, session: { token } }, unlockKey) {
  /** Calls any route of the API. @param {string} method @param {string} path @param {CallOptions} [options] */
  const call = (method, path, options) => server.call(method, path, { ...options, token });
  /** Ends the session. @returns {Promise<void>} */
  const logOut = () => call("DELETE", "/v1/sessions/current");
  let keyring = await openKeyring(bytesOfBase64(text), unlockKey).catch(async (error) => {
    await logOut().catch(() => undefined);
    throw error;
  });
  /** @type {[Map<string, Promise<void>>, Map<string, bigint>]} By missing key; the highest edit number of each item. */
  const [fetches, seen] = [new Map(), new Map()];
  const fetchKeyring = async () => {
    const latest = await openKeyring(bytesOfBase64((await call("GET", "/v1/account/keyring")).keyring), unlockKey);
    keyring = successor(keyring, latest);
  };

  /** Opens a part; fetches an added key. @param {Part} part @param {string} text @param {Header} header */
  async function openOne(part, text, { id, collection }) {
    const [bytes, place] = [bytesOfBase64(text), { part, account, item: id, collection }];
    const opened = await openPart(bytes, place, keyring.keys).catch(async (error) => {
      if (!hasCode(error, "unknown_key")) throw error;
      if (!fetches.has(error.problem.id)) fetches.set(error.problem.id, fetchKeyring());
      await fetches.get(error.problem.id)?.catch((failure) => { fetches.delete(error.problem.id); throw failure; });
      return openPart(bytes, place, keyring.keys);
    });
    return { ...opened, bytes };
  }

  /** Opens an item of the API. @param {ItemState} state @returns {Promise<Item>} */
  async function open({ format, title: sealedTitle, body: sealedBody, ...header }) {
    if (sealedBody === undefined) return header;
    if (format !== "saltern-1") throw new SalternError("unknown_format", "The item has another format.");
    const body = await openOne("body", sealedBody, header);
    const title = sealedTitle === undefined ? undefined : await openOne("title", sealedTitle, header);
    if (title && (title.number !== body.number || String(title.previous) !== String(body.previous))) {
      throw new SalternError("not_authentic", "Title and body are of different edits.");
    }
    if (body.number < (seen.get(header.id) ?? 0)) throw new SalternError("old_version", "The version is an old one.");
    seen.set(header.id, body.number);
    const text = title && new TextDecoder("utf-8", { ignoreBOM: true }).decode(title.content);
    return { ...header, title: text, body: body.content, edit: body.number, digest: await sha256(body.bytes) };
  }

  /** Returns an item with `error` if it does not open. @param {ItemState} state @returns {Promise<Item>} */
  const tryToOpen = (state) => open(state).catch((error) => ({ ...state, title: undefined, body: undefined, error }));
  /** @param {string} id @returns {Promise<Item>} */
  const get = async (id) => open(await call("GET", itemPath(id)));

  /** Yields all items, or those of a collection. @param {{collection?: string}} [options] */
  async function* list({ collection } = {}) {
    for (let page; page !== ""; ) {
      const reply = await call("GET", query("/v1/items", { limit: "500", collection, page }));
      for (const state of reply.items) yield await tryToOpen(state);
      page = reply.nextPage ?? "";
    }
  }

  /** Returns a page of changes. While `more` is true, call it with `since: cursor`.
   * @param {{since?: string, collection?: string, tombstones?: "all"}} [options]
   * @returns {Promise<{changes: Item[], cursor: string, more: boolean, revisionBase: number}>} */
  async function changes(options = {}) {
    const reply = await call("GET", query("/v1/changes", { limit: "500", ...options }));
    for (const [index, state] of reply.changes.entries()) reply.changes[index] = await tryToOpen(state);
    return reply;
  }

  /** Yields the account's revision, now and after each change. Reconnects until the signal aborts.
   * @param {AbortSignal} [signal] @returns {AsyncGenerator<number, void, void>} */
  async function* revisions(signal) {
    for (let [last, pause] = ["", 1000]; !signal?.aborted; await sleep(signal?.aborted ? 0 : pause)) {
      const connection = new AbortController();
      const end = () => connection.abort();
      let silence = setTimeout(end, 60_000);
      signal?.addEventListener("abort", end, { signal: connection.signal });
      try {
        const headers = { Authorization: `Bearer ${token}`, ...(last && { "Last-Event-ID": last }) };
        const reply = await exchange(`${server.origin}/v1/changes/stream`, { headers, signal: connection.signal });
        const reader = reply.body?.pipeThrough(new TextDecoderStream()).getReader();
        for (let rest = "", chunk; (chunk = await reader?.read()) && !chunk.done; ) {
          clearTimeout(silence);
          silence = setTimeout(end, 60_000);
          const lines = (rest + chunk.value).split("\n");
          rest = lines.pop() ?? "";
          for (const [name, value] of lines.map((line) => line.split(/: (.*)/))) {
            if (name === "id") last = value;
            if (name === "retry") pause = Number(value);
            if (name === "data") yield JSON.parse(value).revision;
          }
        }
      } catch (error) {
        if (error instanceof SalternError && !isPassing(error)) throw error;
      } finally {
        clearTimeout(silence);
        end();
      }
    }
  }

  /** Seals an item. `send` may be called repeatedly. @param {NewItem} item @returns {Promise<SealedItem>} */
  async function seal({ id = crypto.randomUUID(), revision = 0, deleted, collection, title, body, edit, digest }) {
    const isNew = revision === 0 || deleted;
    if (!isNew && edit === undefined) throw new SalternError("missing_member", "Open the item before you change it.");
    const number = (deleted ? BigInt(revision) * BigInt(1024) : edit ?? BigInt(0)) + BigInt(1);
    const [key] = keyring.keys.slice(-1);
    const next = { number, previous: digest ?? new Uint8Array(32) };
    const sealOne = (/** @type {Part} */ part, /** @type {string | Bytes} */ content) =>
      sealPart(bytesOf(content), next, { part, account, item: id, collection }, key);
    const sealed = await sealOne("body", body);
    const sealedTitle = title === undefined ? undefined : toBase64(await sealOne("title", title));
    return {
      id,
      headers: isNew ? { "If-None-Match": "*" } : { "If-Match": `"${revision}"` },
      body: { collection, format: "saltern-1", title: sealedTitle, body: toBase64(sealed) },
      content: { title, body: bytesOf(body), edit: number, digest: await sha256(sealed) },
    };
  }

  /** @param {string} method @param {string} id @param {CallOptions} options */
  const change = async (method, id, options) => call(method, itemPath(id), options).catch(async (error) => {
    const { current } = hasCode(error, "precondition_failed") ? error.problem : {};
    if (current !== undefined) error.current = current && await tryToOpen(current);
    throw error;
  });

  /** @param {SealedItem} item @returns {Promise<Item>} */
  async function send({ id, headers, body, content }) {
    const item = { ...await change("PUT", id, { headers, body }), ...content };
    seen.set(item.id, item.edit);
    return item;
  }

  /** Seals and sends an item. @param {NewItem} item @throws {SalternError} `precondition_failed`, with `current`. */
  const put = async (item) => send(await seal(item));
  /** Returns the tombstone. @param {{id: string, revision: number}} item @returns {Promise<Header>} */
  const remove = ({ id, revision }) => change("DELETE", id, { headers: { "If-Match": `"${revision}"` } });

  /** Creates a share. @param {string | Bytes} content @param {{maxViews?: number, expiresAt?: Date}} [options]
   * @returns {Promise<{id: string, manageToken: string, link: string}>} The link opens it. */
  async function share(content, options = {}) {
    const { envelope, passphrase } = await sealShare(content);
    const reply = await call("POST", "/v1/shares", { body: { ...envelope, ...options } });
    return { ...reply, link: `${server.origin}${reply.path}#${passphrase}` };
  }

  const items = { get, list, changes, revisions, open, seal, send, put, delete: remove };
  return { id: account, deviceToken, call, logOut, share, ...items };
}
