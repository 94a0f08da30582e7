// Opens the sealed envelope of a share: PBKDF2-HMAC-SHA256, then AES-256-GCM.

/** The reply is not an envelope, or a truncated one: no key opens it. */
export class DamagedEnvelope extends Error {}
/** The envelope's format is one for apps only. */
export class UnknownFormat extends Error {}
/** The tag does not match: the key or the bytes differ. */
export class WrongKey extends Error {}

const ivLengths = new Map([["aes-256-gcm", 12], ["aes-256-gcm-iv16", 16]]);
const tagLength = 16;

/** Returns the plaintext. Calls `working` before the slow derivation of the key. */
export async function open(envelope, passphrase, working) {
  const { salt, iterations, iv, sealed } = parse(envelope);
  working();
  const stretched = await crypto.subtle.importKey(
    "raw", new TextEncoder().encode(passphrase), "PBKDF2", false, ["deriveKey"]);
  const key = await crypto.subtle.deriveKey(
    { name: "PBKDF2", hash: "SHA-256", salt, iterations }, stretched, { name: "AES-GCM", length: 256 }, false,
    ["decrypt"]);
  try {
    return new Uint8Array(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, sealed));
  } catch {
    throw new WrongKey();
  }
}

function parse(envelope) {
  const { format, iterations } = envelope ?? {};
  if (typeof format !== "string") throw new DamagedEnvelope();
  const ivLength = ivLengths.get(format);
  if (!ivLength) throw new UnknownFormat();
  if (!Number.isSafeInteger(iterations) || iterations < 1 || iterations > 1e7) throw new DamagedEnvelope();
  const salt = fromBase64(envelope.salt);
  const bytes = fromBase64(envelope.sealed);
  if (!salt || salt.length < 8 || !bytes || bytes.length < ivLength + tagLength) throw new DamagedEnvelope();
  return { salt, iterations, iv: bytes.subarray(0, ivLength), sealed: bytes.subarray(ivLength) };
}

/** Returns the bytes of base64, or undefined. */
export function fromBase64(text) {
  if (typeof text !== "string") return undefined;
  let binary;
  try {
    binary = atob(text);
  } catch {
    return undefined;
  }
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
