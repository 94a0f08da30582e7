// @ts-check
// Run by Deno, against the server SALTERN_TEST_URL: what clients/web/saltern.js does with an account.
//
//   life       logs in as the kit's user, reads and changes the kit's items, and shares one
//   totp       logs in with the codes in the file `codes`, the first of which is wrong
//   keyrings   registers an account, and changes its keyring as another device does
import { dataKey, openShare, readLink, Saltern, SalternError, sealPart, stretch, toBase64 } from "../../clients/web/saltern.js";

const [command, work] = Deno.args;
const url = Deno.env.get("SALTERN_TEST_URL") ?? "";
const saltPrefix = "localhost.saltern:";
const server = new Saltern(url, { saltPrefix });
const read = (/** @type {string} */ name) => Deno.readTextFileSync(`${work}/${name}`).trim();
const text = (/** @type {Uint8Array | undefined} */ bytes) => new TextDecoder().decode(bytes);

/** @param {unknown} holds @param {string} expected @returns {asserts holds} */
function check(holds, expected) {
  if (!holds) throw new Error(`expected ${expected}`);
}

/** @param {Promise<unknown>} action @param {string} code @param {number} [status] */
async function fails(action, code, status = 0) {
  const error = await action.then(() => undefined, (caught) => caught);
  check(error instanceof SalternError, `a SalternError ${code}, not ${error}`);
  check(error.code === code && error.status === status, `${code} ${status}, not ${error.code} ${error.status}`);
  return error;
}

/** @template Value @param {AsyncIterable<Value>} values */
async function collected(values) {
  const found = [];
  for await (const value of values) found.push(value);
  return found;
}

/** Replaces `fetch` while the function runs. @param {typeof fetch} replacement @param {() => Promise<unknown>} body */
async function withFetch(replacement, body) {
  const original = globalThis.fetch;
  globalThis.fetch = replacement;
  await body().finally(() => { globalThis.fetch = original; });
}

async function life() {
  const [userid, password] = [read("userid"), read("password")];
  await fails(server.logIn(userid, "wrong"), "wrong_credentials", 401);
  await fails(new Saltern(url, { saltPrefix: "other:" }).logIn(userid, password), "weak_kdf");
  await fails(new Saltern(url).logIn(userid, password), "weak_kdf");
  await fails(new Saltern(url, { saltPrefix, minimumIterations: 600_001 }).logIn(userid, password), "weak_kdf");
  await fails(new Saltern("https://localhost:1").logIn(userid, password), "unreachable");
  const account = await server.logIn(` ${userid.toUpperCase()}`, password, { device: { name: "Deno" } });
  check(account.deviceToken.startsWith("sld_"), "a device token");
  for (const secret of ["slt_", password]) check(!Deno.inspect(account, { depth: 9 }).includes(secret), "no secret to be seen");

  const [shopping] = (await collected(account.list({ collection: "notes" }))).filter(({ title }) => title === "shopping");
  check(text(shopping.body) === "Buy salt.", "the kit's item");
  const edited = await account.put({ ...shopping, body: "Buy salt and pepper." });
  check(edited.revision > shopping.revision && edited.edit === (shopping.edit ?? BigInt(0)) + BigInt(1), "the next edit");
  const conflict = await fails(account.put({ ...shopping, body: "Buy nothing." }), "precondition_failed", 412);
  check(text(conflict.current?.body ?? undefined) === "Buy salt and pepper.", "the present item with the conflict");
  check((await account.get(shopping.id)).title === "shopping", "the title to stay");
  await fails(account.put({ id: shopping.id, revision: 1, collection: "notes", body: "" }), "missing_member");
  await fails(account.get("../account"), "invalid_id");

  await changes(account);
  await lostReply(account);
  await stream(account);
  await shares(account);

  const raw = { format: "opaque", collection: "notes", body: toBase64(crypto.getRandomValues(new Uint8Array(99))) };
  const opaque = crypto.randomUUID();
  await account.call("PUT", `/v1/items/${opaque}`, { body: raw, headers: { "If-None-Match": "*" } });
  const other = (await collected(account.list())).find(({ id }) => id === opaque);
  check(other?.error?.code === "unknown_format" && other.body === undefined, "an item that does not open, in the list");
  await fails(account.get(opaque), "unknown_format");
  await account.delete(other);

  await account.put({ collection: "notes", title: "from the page", body: "Käse 🧂".repeat(20_000) });
  await account.logOut();
  await fails(account.get(shopping.id), "unauthenticated", 401);
}

/** @param {import("../../clients/web/saltern.js").Account} account */
async function changes(account) {
  let { cursor, more } = await account.changes();
  while (more) ({ cursor, more } = await account.changes({ since: cursor }));
  const first = await account.put({ collection: "drafts", title: "one", body: "1" });
  const sealed = await account.call("GET", `/v1/items/${first.id}`);
  const second = await account.put({ ...first, title: undefined, body: new Uint8Array([2]) });
  await fails(account.open(sealed), "old_version");
  const page = await account.changes({ since: cursor });
  check(page.changes.length === 1 && text(page.changes[0].body) === "\x02", "the item once, as it is now");
  check(page.changes[0].title === undefined && page.changes[0].edit === second.edit, "no title");
  await fails(account.delete(first), "precondition_failed", 412);
  const tombstone = await account.delete(second);
  check(tombstone.deleted, "a tombstone");
  await fails(account.get(first.id), "not_found", 404);
  const next = await account.changes({ since: page.cursor, collection: undefined });
  check(next.changes.length === 1 && next.changes[0].deleted && !next.changes[0].error, "the tombstone");
  const again = await account.put({ ...next.changes[0], body: "3" });
  check(again.edit === BigInt(1024) * BigInt(tombstone.revision) + BigInt(1), "an edit number above all earlier ones");
  check(text((await account.get(first.id)).body) === "3", "the item again");
  await fails(account.changes({ since: "A".repeat(23) }), "malformed_cursor", 400);
}

/** @param {import("../../clients/web/saltern.js").Account} account */
async function lostReply(account) {
  const [original, bodies] = [globalThis.fetch, /** @type {any[]} */ ([])];
  await withFetch(async (input, init) => {
    const reply = await original(input, init);
    bodies.push(init?.body);
    if (bodies.length === 1) throw new TypeError("the reply is lost");
    return reply;
  }, async () => {
    const item = await account.put({ collection: "drafts", body: "once" });
    check(bodies.length === 2 && bodies[0] === bodies[1], "the same bytes twice");
    const found = (await collected(account.list({ collection: "drafts" }))).filter(({ id }) => id === item.id);
    check(found.length === 1 && found[0].revision === item.revision, "one item");
  });
  bodies.length = 0;
  await withFetch(async () => {
    bodies.push(1);
    return new Response("<html>", { status: 200 });
  }, async () => { await fails(account.get(crypto.randomUUID()), "unexpected_reply"); });
  check(bodies.length === 1, "no second request after a reply that is not JSON");
}

/** @param {import("../../clients/web/saltern.js").Account} account */
async function stream(account) {
  const ending = new AbortController();
  const revisions = account.revisions(ending.signal);
  const { value: before } = await revisions.next();
  const [{ value: after }, item] = await Promise.all(
    [revisions.next(), account.put({ collection: "drafts", body: "streamed" })]);
  check(after === item.revision && after > Number(before), `the revision ${item.revision}, not ${after}`);
  ending.abort();
  check((await revisions.next()).done, "the end of the stream");
}

/** @param {import("../../clients/web/saltern.js").Account} account */
async function shares(account) {
  const { link, manageToken } = await account.share("Red.", { maxViews: 2, expiresAt: new Date(Date.now() + 3_600_000) });
  check(manageToken.startsWith("slm_"), "a manage token");
  Deno.writeTextFileSync(`${work}/link-of-page`, `${link}\n`);
  const { id, passphrase } = readLink(read("link-of-kit"));
  check(await server.viewsLeft(id) === 2, "two views");
  const envelope = await server.fetchShare(id);
  check(envelope.viewsLeft === 1 && await server.viewsLeft(id) === 1, "one view");
  await fails(openShare(envelope, `${passphrase}x`), "not_authentic");
  check(text(await openShare(envelope, passphrase)).includes("Buy salt."), "the kit's share");
  await fails(server.fetchShare("0".repeat(22)), "not_found", 404);
}

async function totp() {
  const codes = read("codes").split("\n");
  await fails(server.logIn(read("userid"), read("password")), "totp_required", 401);
  await fails(server.logIn(read("userid"), read("password"), { totp: () => null }), "totp_required", 401);
  /** @type {string[]} */
  const asked = [];
  const account = await server.logIn(read("userid"), read("password"), {
    totp: async (error) => { asked.push(error.code); return codes.shift() ?? null; },
  });
  check(asked.join() === "totp_required,wrong_totp", `two questions, not ${asked.join()}`);
  await account.logOut();
}

/** @param {CryptoKey} unlockKey @param {number} counter @param {Uint8Array<ArrayBuffer>[]} keys */
async function sealedKeyring(unlockKey, counter, keys) {
  const info = new TextEncoder().encode("saltern-1 keyring key");
  const algorithm = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info };
  const key = await dataKey(new Uint8Array(await crypto.subtle.deriveBits(algorithm, unlockKey, 256)));
  const vaultKey = new Uint8Array(32).fill(7);
  const content = Uint8Array.from([1, 0, 0, 0, 0, 0, 0, 0, counter, ...vaultKey, 0, keys.length, ...keys.flatMap((bytes) => [...bytes]), 0]);
  const [edit, zeros] = [{ number: BigInt(counter), previous: new Uint8Array(32) }, "00000000-0000-0000-0000-000000000000"];
  return toBase64(await sealPart(content, edit, { part: "keyring", account: zeros, item: zeros, collection: "" }, key));
}

async function keyrings() {
  const userid = `web-${crypto.randomUUID()}@example.org`;
  const { passwordKey, unlockKey } = await stretch("S3kr3t! für Gäste", saltPrefix + userid, 600_000);
  const keys = [1, 2, 3, 4].map((byte) => new Uint8Array(32).fill(byte));
  const registered = await server.call("POST", "/v1/accounts", { body: {
    userid, passwordKey: toBase64(passwordKey), kdf: { iterations: 600_000 }, keyring: await sealedKeyring(unlockKey, 5, keys.slice(0, 1)),
  } });
  const first = await server.logIn(userid, "S3kr3t! fu\u0308r Ga\u0308ste");
  check(first.id === registered.accountId, "the account, also with a password in another normal form");

  const store = (/** @type {string} */ keyring) => first.call("PUT", "/v1/account/keyring", { body: { keyring }, headers: { "If-Match": "*" } });
  await store(await sealedKeyring(unlockKey, 6, keys.slice(0, 2)));
  const second = await server.logIn(userid, "S3kr3t! für Gäste");
  const item = await second.put({ collection: "notes", body: "under the second key" });
  for (const { body } of await Promise.all([first.get(item.id), first.get(item.id)])) {
    check(text(body) === "under the second key", "the first device to fetch the keyring");
  }

  // A server that returns an older keyring, one with other content, or one that seals with a retired key.
  const third = await dataKey(keys[2].slice());
  const place = /** @type {const} */ ({ part: "body", account: first.id, item: item.id, collection: "notes" });
  const body = toBase64(await sealPart(new Uint8Array(1), { number: BigInt(9), previous: new Uint8Array(32) }, place, third));
  for (const keyring of [await sealedKeyring(unlockKey, 5, [keys[0], keys[2]]), await sealedKeyring(unlockKey, 6, [keys[1], keys[2]]),
    await sealedKeyring(unlockKey, 7, [keys[1], keys[2], keys[0]])]) {
    const device = await server.logIn(userid, "S3kr3t! für Gäste");
    await store(keyring);
    await fails(device.open({ ...item, format: "saltern-1", title: undefined, body }), "keyring_replaced");
    await store(await sealedKeyring(unlockKey, 6, keys.slice(0, 2)));
  }
  await store(toBase64(crypto.getRandomValues(new Uint8Array(300))));
  await fails(server.logIn(userid, "S3kr3t! für Gäste"), "keyring_unusable");
  const { sessions } = await first.call("GET", "/v1/sessions");
  check(sessions.length === 6, `the session of the failed log-in to be ended: ${sessions.length}`);
}

const commands = { life, totp, keyrings };
await commands[/** @type {keyof typeof commands} */ (command)]();
console.log(`${command} passed`);
