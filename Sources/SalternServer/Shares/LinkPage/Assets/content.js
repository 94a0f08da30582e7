// Recognises a plaintext as a text, the fields of a JSON object, or a file.

import { fromBase64 } from "./saltern.js";

/** Returns {text}, {fields: [{name, value}]} or {file: {name, type, bytes}}. */
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
 * Removes the padding to blocks of 16 that some apps add before they seal (PKCS #7): n bytes of value n. Text can end
 * like that only in white space. The caller does not use the result for other bytes.
 */
function unpadded(bytes) {
  const count = bytes.at(-1);
  if (bytes.length % 16 || !(count >= 1 && count <= 16)) return bytes;
  const end = bytes.length - count;
  return bytes.subarray(end).every((byte) => byte === count) ? bytes.subarray(0, end) : bytes;
}

/** Parses JSON and keeps the digits of numbers: long ones are those of cards or accounts. */
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

/** Returns the file of an object with exactly `filename`, `mediaType` and `data`. */
function fileOf(value) {
  const { filename, mediaType, data } = value;
  const isFile = Object.keys(value).length === 3 && typeof filename === "string" && typeof mediaType === "string";
  const bytes = isFile ? fromBase64(data) : undefined;
  return bytes && { name: safeName(filename), type: mediaType, bytes };
}

/** Returns a name without folders, and without characters that hide its extension. */
function safeName(name) {
  const safe = name.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "").replace(/[/\\:*?"<>|]/g, "_").replace(/^[.\s]+/, "").trim();
  return safe.slice(-120) || "share.bin";
}
