// @ts-check
// The vectors of docs/vectors.json and Tests/Browser/share-vectors.json against clients/web/saltern.js, in any runtime.

/** @param {boolean} holds @param {string} expected */
function check(holds, expected) {
  if (!holds) throw new Error(`expected ${expected}`);
}

/** @param {string} text */
const bytes = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
/** @param {Uint8Array} data */
const hex = (data) => Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("");
/** @param {string} content */
const utf8 = (content) => new TextEncoder().encode(content);

/** Calls the function while the random numbers are these. @template Value @param {Uint8Array[]} numbers
 * @param {() => Promise<Value>} body */
async function withRandomNumbers(numbers, body) {
  const queue = [...numbers];
  const draw = (/** @type {Uint8Array} */ array) => {
    const next = queue.shift();
    if (!next || next.length !== array.length) throw new Error(`expected no draw of ${array.length} bytes`);
    array.set(next);
    return array;
  };
  Object.defineProperty(crypto, "getRandomValues", { value: draw, configurable: true });
  try {
    return await body();
  } finally {
    Reflect.deleteProperty(crypto, "getRandomValues");
  }
}

/** @param {() => Promise<unknown>} body @param {string} code */
async function fails(body, code) {
  const result = await body().then(() => "nothing", (error) => error.code ?? String(error));
  check(result === code, `${code}, not ${result}`);
}

/** Checks every vector, and returns the names of those that hold.
 * @param {typeof import("../../clients/web/saltern.js")} saltern @param {any} vectors @param {any} shares */
export async function checkVectors(saltern, vectors, shares) {
  const held = [];
  const { stretch, item, keyring, share, random } = vectors;
  const { passwordKey, unlockKey } = await saltern.stretch(stretch.password, stretch.salt, Number(stretch.iterations));
  check(hex(passwordKey) === stretch.passwordKey, "the password key");
  check(unlockKey.extractable === false, "an unlock key that cannot be read");
  held.push("stretch");

  await checkItem(saltern, item);
  held.push("item");

  // The password opens the keyring only if the unlock key and the keyring's key are right, too.
  const opened = await saltern.openKeyring(bytes(keyring.sealed), unlockKey);
  check(opened.counter === BigInt(keyring.counter) && opened.keys.length === 2, "the keyring");
  check(opened.keys.every(({ key }) => key.extractable === false), "data keys that cannot be read");
  check(opened.keys[0].id === (await saltern.dataKey(bytes(item.dataKey))).id, "the first data key");
  check(keyring.plaintext.includes(item.dataKey), "the keyring to have the item's key");
  for (let index = 0; index < keyring.sealed.length / 2; index += 7) {
    const changed = bytes(keyring.sealed);
    changed[index] ^= 1;
    await fails(() => saltern.openKeyring(changed, unlockKey), "keyring_unusable");
  }
  held.push("keyring");

  const envelope = {
    format: "aes-256-gcm", iterations: Number(share.iterations), salt: saltern.toBase64(bytes(share.salt)),
    sealed: saltern.toBase64(bytes(random.share)),
  };
  check(hex(await saltern.openShare(envelope, share.passphrase)) === hex(utf8(share.content)), "the share");
  await fails(() => saltern.openShare(envelope, `${share.passphrase}x`), "not_authentic");
  held.push("share");

  for (const vector of shares.vectors) {
    const content = hex(await saltern.openShare(vector.share, vector.passphrase));
    check(content.startsWith(hex(utf8(vector.plaintext))), `the share vector ${vector.name}`);
    held.push(vector.name);
  }
  await checkOwnShare(saltern);
  return held;
}

/** @param {typeof import("../../clients/web/saltern.js")} saltern @param {any} item */
async function checkItem(saltern, item) {
  const key = await saltern.dataKey(bytes(item.dataKey));
  check(hex(saltern.fromBase64(key.id) ?? new Uint8Array()) === item.keyId, "the key id");
  const seal = (/** @type {string} */ nonce, /** @type {string} */ content, /** @type {any} */ edit, part = "body") =>
    withRandomNumbers([bytes(nonce)], () => saltern.sealPart(utf8(content), edit, place(part), key));
  const place = (/** @type {any} */ part) =>
    ({ part, account: item.account, item: item.item, collection: item.collection });
  const first = { number: BigInt(item.edit), previous: new Uint8Array(32) };
  const sealed = await seal("000102030405060708090a0b", item.content, first);
  check(hex(sealed) === item.sealed, "the sealed body");
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", sealed));
  const second = { number: BigInt(2), previous: digest };
  const title = await seal("0c0d0e0f1011121314151617", "Shopping", second, "title");
  check(hex(title).startsWith("01dd2501b80c0d0e0f1011121314151617733ba9604b8fada7"), "the sealed title of docs/protocol.md");
  const long = await seal("18191a1b1c1d1e1f20212223", "x".repeat(1500), second);
  const longDigest = hex(new Uint8Array(await crypto.subtle.digest("SHA-256", long)));
  check(long.length === 1633 && longDigest.startsWith("77f6a763c29c544435d0"), "the long body of docs/protocol.md");

  const opened = await saltern.openPart(title, place("title"), [key]);
  check(hex(opened.content) === hex(utf8("Shopping")) && opened.number === second.number, "the title");
  check(hex(opened.previous) === hex(digest), "the digest of the first edit");
  for (const other of [place("body"), { ...place("title"), collection: "note" },
    { ...place("title"), item: item.account }, { ...place("title"), account: item.item }]) {
    await fails(() => saltern.openPart(title, other, [key]), "not_authentic");
  }
  await fails(() => saltern.openPart(title, place("title"), []), "unknown_key");
  await fails(() => saltern.openPart(title.slice(0, 96), place("title"), [key]), "malformed_sealed_bytes");
  for (let index = 0; index < title.length; index += 1) {
    const changed = title.slice();
    changed[index] ^= 1;
    await fails(() => saltern.openPart(changed, place("title"), [key]),
      index === 0 ? "malformed_sealed_bytes" : index < 5 ? "unknown_key" : "not_authentic");
  }
  for (const length of [0, 20, 21, 980, 981, 1500, 5000, 70_000]) {
    const content = crypto.getRandomValues(new Uint8Array(length % 65_536));
    const body = await saltern.sealPart(content, second, place("body"), key);
    check(hex((await saltern.openPart(body, place("body"), [key])).content) === hex(content), `${length} bytes again`);
  }
}

/** @param {typeof import("../../clients/web/saltern.js")} saltern */
async function checkOwnShare(saltern) {
  const { envelope, passphrase } = await saltern.sealShare("Käse, Salz");
  check(/^[0-9A-Za-z]{22}$/.test(passphrase), "22 letters and digits");
  check(hex(await saltern.openShare(envelope, passphrase)) === hex(utf8("Käse, Salz")), "its own share");
  const codes = [
    [{ ...envelope, format: "aes-512" }, "unknown_format"], [{ ...envelope, format: 1 }, "malformed_sealed_bytes"],
    [{ ...envelope, salt: "AAAA" }, "malformed_sealed_bytes"], [{ ...envelope, sealed: "*" }, "malformed_sealed_bytes"],
    [{ ...envelope, iterations: 10_000_001 }, "malformed_sealed_bytes"], [null, "malformed_sealed_bytes"],
  ];
  for (const [damaged, code] of codes) await fails(() => saltern.openShare(/** @type {any} */ (damaged), passphrase), String(code));
  for (const [link, id, secret] of [
    ["https://a.example/s/ID#pass", "ID", "pass"], ["https://a.example/s/ID/#p%C3%A4ss", "ID", "päss"],
    ["https://a.example/s/ID/pass/", "ID", "pass"], ["https://a.example/s/ID#100%", "ID", "100%"],
    ["https://a.example/s/ID", "ID", ""],
  ]) {
    const found = saltern.readLink(link);
    check(found.id === id && found.passphrase === secret, `the id and passphrase of ${link}`);
  }
}
