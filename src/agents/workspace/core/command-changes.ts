/**
 * The changes of a command that ran beside other changes of the tree. Pure.
 *
 * BACKGROUND-3  The changes of a command apply to each path that is as it was when the command began, or that already is as the command left
 *               it. If any other path changed meanwhile, it is a conflict, and no file changes.
 */
import { oidOf } from "../../../git/objects.ts";
import type { TreeFile, WorkingTree } from "./working-tree.ts";

export interface CommandChange {
  path: string;
  /** The mode and the object id when the command began, with a space between; `null` for a new file. */
  before: string | null;
  /** `null` if the command deleted the file. */
  after: TreeFile | null;
}

/** Applies changes to `tree`. Returns the paths with conflicts; the tree then stays as it is. Throws if the tree refuses a file. */
export async function applyChanges(tree: WorkingTree, changes: readonly CommandChange[]): Promise<string[]> {
  for (const { path } of changes) tree.checkAllowed(path);
  const open = [];
  for (const change of changes) {
    const now = await stateOf(tree, change.path);
    if (now !== stateOfFile(change.after)) open.push({ ...change, isFree: now === change.before });
  }
  const conflicts = open.filter(({ isFree }) => !isFree).map(({ path }) => path);
  if (conflicts.length > 0) return conflicts.sort();
  const next = tree.fork();
  next.drop(open.flatMap(({ path, after }) => (after === null ? [path] : [])));
  for (const { path, after } of open) if (after !== null) await next.put(path, after);
  tree.adopt(next);
  return [];
}

/** Returns the changes from one tree to another tree of the same commit. */
export async function changesBetween(before: WorkingTree, after: WorkingTree): Promise<CommandChange[]> {
  return Promise.all(
    changedPaths(before, after).map(async (path) => ({
      path,
      before: await stateOf(before, path),
      after: after.entry(path) === undefined ? null : await after.file(path),
    })),
  );
}

/** Returns the paths with different changes in two trees of the same commit, in order. */
export function changedPaths(before: WorkingTree, after: WorkingTree): string[] {
  return [...new Set([...before.changes.keys(), ...after.changes.keys()])]
    .filter((path) => before.changes.get(path) !== after.changes.get(path))
    .sort();
}

async function stateOf(tree: WorkingTree, path: string): Promise<string | null> {
  const { mode, oid } = tree.entry(path) ?? {};
  if (mode === undefined) return null;
  return oid === undefined ? stateOfFile(await tree.file(path)) : `${mode} ${oid}`;
}

function stateOfFile(file: TreeFile | null): string | null {
  return file && `${file.mode} ${oidOf({ type: "blob", content: file.content })}`;
}
