// The canonical form of userids, as docs/protocol.md defines it. Prints that of each example, a line of JSON each.
import { readFileSync } from "node:fs";

const edges = /^\p{White_Space}+|\p{White_Space}+$/gu;
const invisible = /[\p{Cc}\p{Cf}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u;

function isBlinded(text) {
  return text.length === 44 && Buffer.from(text, "base64").toString("base64") === text;
}

/** null for what can be no userid. */
function canonical(text) {
  if (isBlinded(text)) return text;
  let [form, last] = [text, null];
  while (form !== last) [form, last] = [form.normalize("NFKC").toLowerCase().replace(edges, ""), form];
  const bytes = new TextEncoder().encode(form).length;
  return bytes >= 1 && bytes <= 254 && !invisible.test(form) ? form : null;
}

for (const { text } of JSON.parse(readFileSync(process.argv[2], "utf8"))) console.log(JSON.stringify(canonical(text)));
