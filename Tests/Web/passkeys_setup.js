// @ts-check
// Makes a keyring and the unlock box of a passkey, as the kit does. Clients/web only opens them.
import { boxKey, passkeyKey } from "../../clients/web/passkeys.js";
import { dataKey, sealPart, toBase64 } from "../../clients/web/saltern.js";

/** @typedef {Uint8Array<ArrayBuffer>} Bytes */
const zeros = "00000000-0000-0000-0000-000000000000";

/** @param {(ArrayBuffer | Bytes | number[])[]} pieces @returns {Promise<Bytes>} */
const joined = async (...pieces) =>
  new Uint8Array(await new Blob(pieces.map((piece) => new Uint8Array(piece))).arrayBuffer());
const random = (/** @type {number} */ count) => crypto.getRandomValues(new Uint8Array(count));
const number = (/** @type {bigint} */ value) => {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, value);
  return bytes;
};

/** A keyring of format 2 with one data key, sealed by the unlock key. @param {Bytes} unlockKey
 * @param {{id: Bytes, publicKey: Bytes, authenticationKey: Bytes}} passkey */
export async function makeKeyring(unlockKey, { id, publicKey, authenticationKey }) {
  const material = await crypto.subtle.importKey("raw", unlockKey, "HKDF", false, ["deriveBits"]);
  const info = new TextEncoder().encode("saltern-1 keyring key");
  const derived = await crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info }, material, 256);
  const content = await joined(
    [2], number(1n), random(32), [0, 1], random(32), [0],
    [1], [id.length >> 8, id.length & 255], id, publicKey, authenticationKey);
  const place = { part: /** @type {const} */ ("keyring"), account: zeros, item: zeros, collection: "" };
  const edit = { number: 1n, previous: new Uint8Array(32) };
  return toBase64(await sealPart(content, edit, place, await dataKey(new Uint8Array(derived))));
}

/** Makes the values of `PUT /v1/account/passkeys/{id}/box`, and the public half for the keyring.
 * @param {string} account @param {Bytes} id @param {ArrayBuffer} output @param {Bytes} unlockKey */
export async function makeUnlock(account, id, output, unlockKey) {
  const curve = { name: "ECDH", namedCurve: "P-256" };
  const [pair, other] = await Promise.all([0, 1].map(() => crypto.subtle.generateKey(curve, true, ["deriveBits"])));
  const raw = async (/** @type {CryptoKey} */ key) => new Uint8Array(await crypto.subtle.exportKey("raw", key));
  const [publicKey, ephemeral] = await Promise.all([raw(pair.publicKey), raw(other.publicKey)]);
  const { d = "" } = await crypto.subtle.exportKey("jwk", pair.privateKey);
  const text = atob(d.replace(/-/g, "+").replace(/_/g, "/"));
  const privateKey = Uint8Array.from(text, (character) => character.charCodeAt(0));
  const authenticationKey = random(32);
  const place = { part: /** @type {const} */ ("passkey"), account, item: zeros, collection: "" };
  const edit = { number: 1n, previous: new Uint8Array(32) };
  const sealed = await sealPart(
    await joined(publicKey, privateKey, authenticationKey), edit, place, await passkeyKey(account, id, output));
  const counter = number(1n);
  const head = await joined([1], ephemeral, counter);
  const key = await boxKey(other.privateKey, publicKey, { account, ephemeral, publicKey, authenticationKey, counter });
  const nonce = random(12);
  const ciphertext = await crypto.subtle.encrypt({ name: "AES-GCM", iv: nonce, additionalData: head }, key, unlockKey);
  return {
    passkey: { id, publicKey, authenticationKey }, sealedPrivateKey: toBase64(sealed),
    box: toBase64(await joined(head, nonce, ciphertext)),
  };
}
