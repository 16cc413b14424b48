/** The moves of branches and tags by an import. */
import type { Reference, ReferenceMove } from "../d1/repositories.ts";
import { conflict, tooLarge } from "../shared/errors.ts";
import { walk } from "./history.ts";
import { MAX_VISITED } from "./limits.ts";
import type { ObjectReader } from "./object-database.ts";

export const HEADS = "refs/heads/";
export const OF_WORKSPACE = /^refs\/heads\/(?:.+\/)?(?:conv|run)-(?:conv|run)_/;

/** Returns the moves of an import. Throws `CONFLICT` if the histories of a branch differ, or a tag would move, and `TOO_LARGE`. */
export async function movesOf(
  incoming: ObjectReader,
  present: readonly Reference[],
  wanted: readonly Reference[],
): Promise<ReferenceMove[]> {
  const oids = new Map(present.map(({ name, oid }) => [name, oid]));
  const moves = wanted
    .map(({ name, oid }) => ({ name, from: oids.get(name) ?? null, to: oid }))
    .filter(({ from, to }) => from !== to);
  const held = moves.find(({ name, from }) => from !== null && OF_WORKSPACE.test(name));
  if (held !== undefined) {
    const branch = held.name.slice(HEADS.length);
    const message = `The branch "${branch}" belongs to a conversation or a run. Put your commits on another branch, then import again.`;
    throw conflict(message);
  }
  const parents = new Map<string, string[]>();
  let visited = 0;
  for (const [to, group] of Map.groupBy(moves, (move) => move.to)) {
    const earlier = group.filter(({ from }) => from !== null);
    const sought = new Set(earlier.map(({ from }) => from));
    for await (const oid of walk(incoming, to, parents)) {
      sought.delete(oid);
      if (sought.size === 0) break;
      if (++visited > MAX_VISITED) {
        const message = `The histories of the moved branches have more than ${MAX_VISITED} commits together. Import fewer branches at a time.`;
        throw tooLarge(message);
      }
    }
    const refused = earlier.find(({ name, from }) => sought.has(from) || !name.startsWith(HEADS));
    if (refused !== undefined) {
      const message = `${refused.name} of the repository has commits that the other repository lacks. Clone both with git, merge them, and import a bundle of the result.`;
      throw conflict(message);
    }
  }
  return moves;
}
