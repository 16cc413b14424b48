/**
 * Merges of two histories.
 *
 * GITMERGE-1  A file that one side changed has the state of this side. A file that both changed has the lines of both, if the changed lines
 *             are apart. Otherwise the file is a conflict. So is a file above `MAX_MERGED_BYTES` that both changed. `MAX_MERGE_WORK` bounds the
 *             search for changed lines; beyond it, all lines from the first to the last change count as changed.
 * GITMERGE-2  `rebase` applies the commits of the branch after the target's newest commit. It follows first parents, and leaves out commits
 *             without a change. `fail` and `force` make a commit with two parents. `force` takes the branch's state of each conflict.
 * GITMERGE-3  The target and the branch move to the merged commit in one transaction, so the branch goes on at the merged state.
 */
import type { BranchMergeStrategy } from "../protocol/workspace.ts";
import { decodeText, encode } from "./bytes.ts";
import { commitOf, historyOf, mergeBase } from "./history.ts";
import { MAX_MERGE_WORK, MAX_MERGED_BYTES } from "./limits.ts";
import { mergedText, type Work } from "./merged-text.ts";
import { contentOf, type NewObjects } from "./object-database.ts";
import { type Commit, encodeCommit, type Identity } from "./objects.ts";
import { type Entry, filesOf, type TreeFile, treeWith } from "./trees.ts";

/** The paths that both sides changed in different ways. */
export interface Conflicts {
  conflicts: { path: string }[];
}

export interface Merge {
  /** The newest commit of the target. */
  ours: string;
  /** The newest commit of the branch. */
  theirs: string;
  strategy: BranchMergeStrategy;
  message: string;
  author: Identity;
  at: number;
}

/** Returns the newest commit of the target after a merge, with its objects in `objects`; or the conflicts. */
export async function merged(objects: NewObjects, merge: Merge): Promise<{ oid: string } | Conflicts> {
  const { ours, theirs, strategy, message, author, at } = merge;
  const base = await mergeBase(objects, ours, theirs);
  if (base === theirs) return { oid: ours };
  if (base === ours) return { oid: theirs };
  const work = { left: MAX_MERGE_WORK };
  if (strategy === "rebase") return rebased(objects, merge, work);
  const sides = {
    base: await treeOf(objects, base),
    ours: await treeOf(objects, ours),
    theirs: await treeOf(objects, theirs),
  };
  const made = await mergedTree(objects, sides, work, strategy === "force");
  if ("conflicts" in made) return made;
  const commit: Commit = { tree: made.tree, parents: [ours, theirs], message, author, at };
  return { oid: await objects.add({ type: "commit", content: encodeCommit(commit) }) };
}

async function rebased(
  objects: NewObjects,
  { ours, theirs }: Merge,
  work: Work,
): Promise<{ oid: string } | Conflicts> {
  const history = await historyOf(objects, ours);
  const commits: Commit[] = [];
  let parent: string | undefined = theirs;
  while (parent !== undefined && !history.has(parent)) {
    const commit: Commit = await commitOf(objects, parent);
    commits.push(commit);
    [parent] = commit.parents;
  }
  let head = ours;
  for (const { tree: theirTree, parents, message, author, at } of commits.reverse()) {
    const ourTree = await treeOf(objects, head);
    const sides = { base: await treeOf(objects, parents[0] ?? null), ours: ourTree, theirs: theirTree };
    const made = await mergedTree(objects, sides, work);
    if ("conflicts" in made) return made;
    if (made.tree === ourTree) continue;
    const commit: Commit = { tree: made.tree, parents: [head], message, author, at };
    head = await objects.add({ type: "commit", content: encodeCommit(commit) });
  }
  return { oid: head };
}

interface Sides {
  base: string | null;
  ours: string | null;
  theirs: string | null;
}

async function treeOf(objects: NewObjects, commit: string | null): Promise<string | null> {
  return commit === null ? null : (await commitOf(objects, commit)).tree;
}

/** Merges two trees (GITMERGE-1). With `force` each conflict has the state of `theirs`. */
async function mergedTree(
  objects: NewObjects,
  { base, ours, theirs }: Sides,
  work: Work,
  force = false,
): Promise<{ tree: string } | Conflicts> {
  const list = async (tree: string | null) =>
    tree === null ? new Map<string, TreeFile>() : filesOf(objects, tree);
  const [before, own, other] = [await list(base), await list(ours), await list(theirs)];
  const changes = new Map<string, Entry>();
  const conflicts = new Set<string>();
  for (const path of new Set([...before.keys(), ...other.keys()])) {
    const [old, mine, its] = [before.get(path), own.get(path), other.get(path)];
    if (isSame(old, its) || isSame(mine, its)) continue;
    const file = isSame(old, mine) ? null : await mergedFile(objects, old, mine, its, work);
    if (file !== null) changes.set(path, file);
    else if (force || isSame(old, mine)) changes.set(path, its ?? null);
    else conflicts.add(path);
  }
  const after = new Set(own.keys());
  for (const [path, entry] of changes)
    if (entry === null) after.delete(path);
    else after.add(path);
  for (const path of after) {
    for (const folder of foldersOf(path)) {
      if (!after.has(folder)) continue;
      // A file and a folder have one path.
      if (!force) conflicts.add(folder);
      else if (other.has(folder)) changes.set(path, null);
      else changes.set(folder, null);
    }
  }
  if (conflicts.size > 0) return { conflicts: [...conflicts].sort().map((path) => ({ path })) };
  return { tree: await treeWith(objects, ours, changes) };
}

function isSame(one: TreeFile | undefined, other: TreeFile | undefined): boolean {
  return one?.oid === other?.oid && one?.mode === other?.mode;
}

function foldersOf(path: string): string[] {
  const names = path.split("/").slice(0, -1);
  return names.map((_, index) => names.slice(0, index + 1).join("/"));
}

/** Returns the file with the lines of both sides; `null` for a conflict. */
async function mergedFile(
  objects: NewObjects,
  old: TreeFile | undefined,
  mine: TreeFile | undefined,
  its: TreeFile | undefined,
  work: Work,
): Promise<Entry> {
  if (old === undefined || mine === undefined || its === undefined) return null;
  if ([old, mine, its].some(({ mode }) => mode === "120000")) return null;
  const mode = mine.mode === old.mode ? its.mode : mine.mode;
  const texts: string[] = [];
  for (const { oid } of [old, mine, its]) {
    const content = await contentOf(objects, oid, "blob");
    const text = content.length > MAX_MERGED_BYTES ? undefined : decodeText(content);
    if (text === undefined) return null;
    texts.push(text);
  }
  const [base = "", ours = "", theirs = ""] = texts;
  const text = mergedText(base, ours, theirs, work);
  return text === undefined
    ? null
    : { oid: await objects.add({ type: "blob", content: encode(text) }), mode };
}
