// Reads the share's id and the passphrase from the address.

/**
 * Reads the address: /s/ID#PASSPHRASE, or the legacy form /s/ID/PASSPHRASE, either with a slash at the end of its path.
 * Other forms are replaced by the first at once, so that later requests, bookmarks and history entries contain the
 * passphrase only as a fragment.
 *
 * `passphrase` is empty when the address has none.
 */
export function readLink() {
  const [, , id = "", legacy] = location.pathname.split("/");
  const raw = legacy || location.hash.slice(1);
  if (location.pathname !== `/s/${id}` || location.search) history.replaceState(null, "", `/s/${id}${raw && "#"}${raw}`);
  return { id, passphrase: decoded(raw) };
}

/** Decodes percent-encoded UTF-8, and returns other text unchanged. */
function decoded(raw) {
  try {
    return decodeURIComponent(raw);
  } catch {
    return raw;
  }
}
