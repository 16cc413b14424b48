/** The objects that another repository lacks. Pure, over a reader. */
import { tooLarge } from "../shared/errors.ts";
import { commitOf, walk } from "./history.ts";
import { MAX_NEW_BYTES, MAX_VISITED } from "./limits.ts";
import type { ObjectReader } from "./object-database.ts";
import { FOLDER, type GitObject, readTree, SUBMODULE } from "./objects.ts";
import type { Pack } from "./pack-index.ts";
import { writePack } from "./pack-writer.ts";

/** Reports whether a commit is another commit or one of its ancestors. Throws `TOO_LARGE` for a long history without the commit. */
export async function isInHistory(objects: ObjectReader, sought: string, of: string): Promise<boolean> {
  let visited = 0;
  for await (const oid of walk(objects, of)) {
    if (oid === sought) return true;
    if (++visited > MAX_VISITED) throw tooLarge(`The history of ${of} has more than ${MAX_VISITED} commits.`);
  }
  return false;
}

/** Returns a pack with a commit, its history and their files, without the objects of the `known` commits and their histories. Throws `TOO_LARGE`. */
export async function outgoingPack(
  objects: ObjectReader,
  head: string,
  known: ReadonlySet<string>,
): Promise<Pack> {
  const sent = new Map<string, GitObject>();
  const seen = new Set<string>();
  let bytes = 0;
  const add = (oid: string, object: GitObject) => {
    bytes += object.content.length;
    if (bytes > MAX_NEW_BYTES)
      throw tooLarge(
        `The new commits have more than ${MAX_NEW_BYTES} bytes. Push an older commit first, or use a bundle.`,
      );
    sent.set(oid, object);
  };
  /** Visits the folders and files of a tree. Without `send`, the other repository has them. */
  const visit = async (root: string, send: boolean) => {
    const waiting = [root];
    for (let oid = waiting.pop(); oid !== undefined; oid = waiting.pop()) {
      if (seen.has(oid)) continue;
      seen.add(oid);
      const tree = await objects.read(oid);
      if (send) add(oid, tree);
      for (const { mode, oid: child } of readTree(tree.content)) {
        if (mode === SUBMODULE || seen.has(child)) continue;
        if (mode === FOLDER) waiting.push(child);
        else {
          seen.add(child);
          if (send) add(child, await objects.read(child));
        }
      }
    }
  };
  const trees: string[] = [];
  const reached = new Set([head]);
  for (const oid of reached) {
    const { tree, parents } = await commitOf(objects, oid);
    if (known.has(oid)) {
      await visit(tree, false);
      continue;
    }
    add(oid, await objects.read(oid));
    trees.push(tree);
    for (const parent of parents) reached.add(parent);
  }
  for (const tree of trees) await visit(tree, true);
  return writePack(sent);
}
