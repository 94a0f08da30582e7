// What a plaintext is: a text, the fields of a JSON object, or a file.

import { fromBase64 } from "./envelope.js";

/** {text}, {fields: [{name, value}]} or {file: {name, type, bytes}}. */
export function contentOf(bytes) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(unpadded(bytes));
  } catch {
    return { file: { name: "share.bin", type: "application/octet-stream", bytes } };
  }
  const value = parsed(text);
  if (!isObject(value)) return { text };
  const file = fileOf(value);
  if (file) return { file };
  const fields = Object.entries(value).map(([name, member]) => ({ name, value: textOf(member) }));
  return fields.length ? { fields } : { text };
}

/**
 * Some apps pad to blocks of 16 before they seal (PKCS #7): n bytes of value n at the end. Text ends like that in white
 * space at most; other bytes may end like anything, so they are left as they are.
 */
function unpadded(bytes) {
  const count = bytes.at(-1);
  if (bytes.length % 16 || !(count >= 1 && count <= 16)) return bytes;
  const end = bytes.length - count;
  return bytes.subarray(end).every((byte) => byte === count) ? bytes.subarray(0, end) : bytes;
}

/** JSON with every number as it was written: a long one is a card's or an account's, and must not be rounded. */
function parsed(text) {
  try {
    return JSON.parse(text, (_, value, context) =>
      typeof value === "number" && context && String(value) !== context.source && JSON.rawJSON
        ? JSON.rawJSON(context.source) : value);
  } catch {
    return undefined;
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !JSON.isRawJSON?.(value);
}

function textOf(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** An object of exactly `filename`, `mediaType` and `data` is a file. */
function fileOf(value) {
  const { filename, mediaType, data } = value;
  const isFile = Object.keys(value).length === 3 && typeof filename === "string" && typeof mediaType === "string";
  const bytes = isFile ? fromBase64(data) : undefined;
  return bytes && { name: safeName(filename), type: mediaType, bytes };
}

/** A name without folders, and without characters that hide what it ends in. */
function safeName(name) {
  const safe = name.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "").replace(/[/\\:*?"<>|]/g, "_").replace(/^[.\s]+/, "").trim();
  return safe.slice(-120) || "share.bin";
}
