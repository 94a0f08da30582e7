// @ts-check
// Opens the unlock key of an account with the PRF output of a passkey, by docs/protocol.md. docs/passkeys.md explains
// its use.
import { dataKey, fromBase64, openPart, SalternError } from "./saltern.js";

/** @typedef {Uint8Array<ArrayBuffer>} Bytes */

const encoder = new TextEncoder();
const zeros = "00000000-0000-0000-0000-000000000000";

/** The input of PRF, as `prf.eval.first`. */
export const prfInput = encoder.encode("saltern-1 passkey");

/** @param {(string | ArrayBuffer | Bytes)[]} pieces @returns {Promise<Bytes>} */
const joined = async (...pieces) => new Uint8Array(await new Blob(pieces).arrayBuffer());

/** @param {string} account */
const accountBytes = (account) =>
  Uint8Array.from(account.replace(/-/g, "").match(/../g) ?? [], (pair) => parseInt(pair, 16));

/** Derives the key that seals the private key of a passkey, and overwrites the output.
 * @param {string} account @param {ArrayBuffer | Bytes} credentialId @param {ArrayBuffer | Bytes} output */
export async function passkeyKey(account, credentialId, output) {
  const bytes = new Uint8Array(output);
  const key = await crypto.subtle.importKey("raw", bytes, "HKDF", false, ["deriveBits"]);
  bytes.fill(0);
  const info = await joined("saltern-1 passkey key", accountBytes(account), credentialId);
  const derived = await crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info }, key, 256);
  return dataKey(new Uint8Array(derived));
}

/** Derives the key of a box from the shared secret of its two key pairs.
 * @param {CryptoKey} privateKey @param {Bytes} theirs The public key of the other pair.
 * @param {{account: string, ephemeral: Bytes, publicKey: Bytes, authenticationKey: Bytes, counter: Bytes}} box */
export async function boxKey(privateKey, theirs, { account, ephemeral, publicKey, authenticationKey, counter }) {
  const curve = { name: "ECDH", namedCurve: "P-256" };
  const other = await crypto.subtle.importKey("raw", theirs, curve, false, []);
  const secret = await crypto.subtle.deriveBits({ name: "ECDH", public: other }, privateKey, 256);
  const material = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveKey"]);
  const info = await joined("saltern-1 passkey box", accountBytes(account), ephemeral, publicKey, counter);
  const parameters = { name: "HKDF", hash: "SHA-256", salt: authenticationKey, info };
  return crypto.subtle.deriveKey(parameters, material, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
}

/** @param {Bytes} bytes */
const base64URL = (bytes) =>
  btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");

/** Opens the unlock key, which cannot be exported. The key opens the keyring of the account.
 * @param {string} account @param {ArrayBuffer | Bytes} credentialId @param {ArrayBuffer | Bytes} output The output of PRF.
 * @param {{sealedPrivateKey: string, box: string}} unlock The member of the log-in's reply.
 * @throws {SalternError} `not_authentic`, `unknown_key` or `malformed_sealed_bytes`. */
export async function openUnlockKey(account, credentialId, output, unlock) {
  const [sealed, box] = [fromBase64(unlock.sealedPrivateKey), fromBase64(unlock.box)];
  if (!sealed || box?.length !== 134 || box[0] !== 1) {
    throw new SalternError("malformed_sealed_bytes", "These bytes are no unlock box.");
  }
  const key = await passkeyKey(account, credentialId, output);
  const place = { part: /** @type {const} */ ("passkey"), account, item: zeros, collection: "" };
  const { content } = await openPart(sealed, place, [key]);
  const [publicKey, authenticationKey] = [content.slice(0, 65), content.slice(97, 129)];
  const [x, y, d] = [[1, 33], [33, 65], [65, 97]].map(([from, to]) => base64URL(content.subarray(from, to)));
  content.fill(0);
  const privateKey = await crypto.subtle.importKey(
    "jwk", { kty: "EC", crv: "P-256", x, y, d }, { name: "ECDH", namedCurve: "P-256" }, false, ["deriveBits"]);
  const [head, ephemeral, counter] = [box.slice(0, 74), box.slice(1, 66), box.slice(66, 74)];
  const parameters = { name: "AES-GCM", iv: box.slice(74, 86), additionalData: head };
  const places = { account, ephemeral, publicKey, authenticationKey, counter };
  const failed = () => { throw new SalternError("not_authentic", "The key is wrong, or the box was changed."); };
  const opened = await crypto.subtle.decrypt(
    parameters, await boxKey(privateKey, ephemeral, places), box.slice(86)).catch(failed);
  const unlockKey = await crypto.subtle.importKey("raw", opened, "HKDF", false, ["deriveBits", "deriveKey"]);
  new Uint8Array(opened).fill(0);
  return unlockKey;
}
