// @ts-check
// Run by Deno: the vectors.
import * as saltern from "../../clients/web/saltern.js";
import { checkVectors } from "./vectors.js";

const read = async (/** @type {string} */ path) => JSON.parse(await Deno.readTextFile(new URL(path, import.meta.url)));
const held = await checkVectors(saltern, await read("../../docs/vectors.json"), await read("../Browser/share-vectors.json"));
console.log(`${held.length} vectors: ${held.join(", ")}`);
