// Which share the address names, and the passphrase in it.

import { readLink } from "./saltern.js";

/**
 * Reads the address: /s/ID#PASSPHRASE, or the legacy form /s/ID/PASSPHRASE, either with a slash at the end of its path.
 * Whatever is not the first form becomes it at once, so that the passphrase is in no later request, bookmark or history
 * entry but as a fragment.
 *
 * `passphrase` is empty when the address has none.
 */
export function readAddress() {
  const { id, encoded, passphrase } = readLink(location.href);
  if (location.pathname !== `/s/${id}` || location.search) {
    history.replaceState(null, "", `/s/${id}${encoded && "#"}${encoded}`);
  }
  return { id, passphrase };
}
