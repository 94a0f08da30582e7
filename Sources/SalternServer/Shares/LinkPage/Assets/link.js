// Which share the address names, and the passphrase in it.

/**
 * Reads the address: /s/ID#PASSPHRASE, or the legacy form /s/ID/PASSPHRASE, either with a slash at the end of its path.
 * Whatever is not the first form becomes it at once, so that the passphrase is in no later request, bookmark or history
 * entry but as a fragment.
 *
 * `passphrase` is empty when the address has none.
 */
export function readLink() {
  const [, , id = "", legacy] = location.pathname.split("/");
  const raw = legacy || location.hash.slice(1);
  if (location.pathname !== `/s/${id}` || location.search) history.replaceState(null, "", `/s/${id}${raw && "#"}${raw}`);
  return { id, passphrase: decoded(raw) };
}

/** Percent-decoded UTF-8; what is no such encoding is taken as it is. */
function decoded(raw) {
  try {
    return decodeURIComponent(raw);
  } catch {
    return raw;
  }
}
