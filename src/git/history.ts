/** The history of commits: its order, common ancestors, and who descends from whom. */
import { contentOf, type ObjectReader } from "./object-database.ts";
import { type Commit, readCommit } from "./objects.ts";

export interface LoggedCommit extends Omit<Commit, "tree"> {
  oid: string;
}

/** Reads a commit. Throws as `contentOf`. */
export async function commitOf(objects: ObjectReader, oid: string): Promise<Commit> {
  return readCommit(await contentOf(objects, oid, "commit"));
}

/** Yields a commit and its ancestors, the newest first, each once. */
export async function* ancestorsOf(objects: ObjectReader, oid: string): AsyncGenerator<LoggedCommit> {
  const seen = new Set([oid]);
  const waiting = [await logged(objects, oid)];
  for (let commit = takeNewest(waiting); commit !== undefined; commit = takeNewest(waiting)) {
    yield commit;
    for (const parent of commit.parents) {
      if (seen.has(parent)) continue;
      seen.add(parent);
      waiting.push(await logged(objects, parent));
    }
  }
}

async function logged(objects: ObjectReader, oid: string): Promise<LoggedCommit> {
  const { parents, message, author, at } = await commitOf(objects, oid);
  return { oid, parents, message, author, at };
}

/** Yields a commit and its ancestors, each once. `parents` keeps the parents of the commits that it reads. */
export async function* walk(
  objects: ObjectReader,
  oid: string,
  parents = new Map<string, string[]>(),
): AsyncGenerator<string> {
  const seen = new Set([oid]);
  for (const next of seen) {
    yield next;
    const known = parents.get(next) ?? (await commitOf(objects, next)).parents;
    parents.set(next, known);
    for (const parent of known) seen.add(parent);
  }
}

export async function historyOf(objects: ObjectReader, oid: string): Promise<ReadonlySet<string>> {
  const history = new Set<string>();
  for await (const each of walk(objects, oid)) history.add(each);
  return history;
}

/**
 * Returns a common ancestor of two commits that is no ancestor of another one, the newest of several; `null` without one. Commits may have
 * any times. If times are in order, it does not read the history of this ancestor behind its parents.
 */
export async function mergeBase(objects: ObjectReader, one: string, other: string): Promise<string | null> {
  if (one === other) return one;
  // A commit is reached from one side, from the other, or from both; or it is behind a common ancestor.
  const [ONE, OTHER, BOTH, BEHIND] = [1, 2, 3, 4];
  const flags = new Map([
    [one, ONE],
    [other, OTHER],
  ]);
  const commits = new Map<string, LoggedCommit>();
  const read = async (oid: string) => {
    const commit = commits.get(oid) ?? (await logged(objects, oid));
    commits.set(oid, commit);
    return commit;
  };
  const found = new Map<string, LoggedCommit>();
  const isBehind = ({ oid }: LoggedCommit) => ((flags.get(oid) ?? 0) & BEHIND) !== 0;
  const left = () => [...found.values()].filter((commit) => !isBehind(commit));
  const waiting = [await read(one), await read(other)];
  // With several ancestors left, the loop finds those that are ancestors of others.
  while (waiting.some((commit) => !isBehind(commit)) || (waiting.length > 0 && left().length > 1)) {
    const commit = takeNewest(waiting);
    if (commit === undefined) break;
    const own = flags.get(commit.oid) ?? 0;
    const isCommon = (own & BOTH) === BOTH;
    if (isCommon && !isBehind(commit)) found.set(commit.oid, commit);
    for (const parent of commit.parents) {
      const before = flags.get(parent) ?? 0;
      const after = before | own | (isCommon ? BEHIND : 0);
      if (after === before) continue;
      flags.set(parent, after);
      waiting.push(await read(parent));
    }
  }
  return takeNewest(left())?.oid ?? null;
}

function takeNewest(waiting: LoggedCommit[]): LoggedCommit | undefined {
  let newest = 0;
  waiting.forEach(({ at }, index) => {
    if (at > (waiting[newest]?.at ?? 0)) newest = index;
  });
  return waiting.splice(newest, 1)[0];
}
