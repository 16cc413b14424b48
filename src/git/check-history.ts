/** The check of an imported history: it is complete, and its files have paths that are safe on every file system. */
import type { Reference } from "../d1/repositories.ts";
import { type DramatisError, invalid } from "../shared/errors.ts";
import { fromHex, toHex } from "./bytes.ts";
import { BoundedCache, type TreeSize } from "./caches.ts";
import type { ObjectDatabase } from "./object-database.ts";
import {
  FOLDER,
  isInOrder,
  type ObjectType,
  readCommit,
  readRawTree,
  SUBMODULE,
  taggedObject,
} from "./objects.ts";
import type { PackIndex } from "./pack-index.ts";
import { pathProblem } from "./path-problem.ts";
import { checkSize } from "./trees.ts";

const OID = /^[0-9a-f]{40}$/;
const FILE_MODES = ["100644", "100755", "100664", "120000"];

/**
 * Throws `INVALID_INPUT` if an object that is reachable from a reference is missing, damaged, of another type, or has an unsafe name. Throws
 * `TOO_LARGE` for a branch with more files than a list may have (GITTREE-1). `types` has the types of all objects of `index`. Returns the reachable
 * objects.
 */
export async function checkHistory(
  objects: ObjectDatabase,
  index: PackIndex,
  types: ReadonlyMap<string, ObjectType>,
  references: readonly Reference[],
): Promise<readonly string[]> {
  const typeOf = index.oids().map((oid) => types.get(oid));
  const seen = new Uint8Array(typeOf.length);
  const safe = new Set<string>();
  const waiting: number[] = [];
  const visit = (oid: Uint8Array, expected?: ObjectType) => {
    const row = index.rowOf(oid);
    const type = row === undefined ? undefined : typeOf[row];
    if (row === undefined || type === undefined) throw broken(`lacks the object ${toHex(oid)}`);
    if (type !== (expected ?? type)) throw broken(`has a ${type} ${toHex(oid)}, which must be a ${expected}`);
    if (seen[row] === 1) return;
    seen[row] = 1;
    // A blob has no references.
    if (type !== "blob") waiting.push(row);
  };
  const visitNamed = (oid: string, expected?: ObjectType) => {
    if (!OID.test(oid)) throw broken(`names ${JSON.stringify(oid)}, which is no id of an object`);
    visit(fromHex(oid), expected);
  };
  for (const { name, oid } of references)
    visitNamed(oid, name.startsWith("refs/heads/") ? "commit" : undefined);
  for (let row = waiting.pop(); row !== undefined; row = waiting.pop()) {
    const { type, content } = await objects.read(index.oidAt(row));
    if (type === "commit") {
      const { tree, parents } = readCommit(content);
      visitNamed(tree, "tree");
      for (const parent of parents) visitNamed(parent, "commit");
    } else if (type === "tree") {
      const entries = readRawTree(content);
      const names = new Set(entries.map(({ name }) => name));
      if (names.size < entries.length || !isInOrder(entries))
        throw broken(`has a folder ${index.oidAt(row)} with a name twice, or out of order`);
      for (const { mode, name, oid: child } of entries) {
        if (!safe.has(name)) {
          const problem = name.includes("/") ? 'has a "/".' : pathProblem(name);
          if (problem !== undefined) throw broken(`has a file ${JSON.stringify(name)}, which ${problem}`);
          safe.add(name);
        }
        if (mode === SUBMODULE) continue;
        if (mode !== FOLDER && !FILE_MODES.includes(mode)) throw broken(`has a file of the mode ${mode}`);
        visit(child, mode === FOLDER ? "tree" : "blob");
      }
    } else if (type === "tag") {
      const tagged = taggedObject(content);
      visitNamed(tagged.oid, tagged.type);
    }
  }
  // Many branches share folders. All sizes stay until the end, so each folder is read once.
  const sized = { read: (oid: string) => objects.read(oid), sizes: new BoundedCache<TreeSize>(Infinity) };
  for (const { name, oid } of references) {
    if (!name.startsWith("refs/heads/")) continue;
    await checkSize(sized, readCommit((await objects.read(oid)).content).tree);
  }
  return [...seen.keys()].filter((row) => seen[row] === 1).map((row) => index.oidAt(row));
}

function broken(problem: string): DramatisError {
  return invalid(`The history ${problem}. Repair it, then import it again.`);
}
