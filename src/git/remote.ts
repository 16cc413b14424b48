/**
 * Repositories on other git servers.
 *
 * REMOTE-1  A fetch adds the branches and tags of a remote as an import of a bundle does: a branch moves only forward.
 * REMOTE-2  A push moves one branch of a remote, and only forward. The same push again changes nothing.
 */
import type { Reference } from "../d1/repositories.ts";
import { conflict, invalid, notFound, tooLarge } from "../shared/errors.ts";
import type { Bundle } from "./bundle.ts";
import type { GitRepository } from "./git-repository.ts";
import { HEADS, OF_WORKSPACE } from "./import-moves.ts";
import { MAX_REFERENCES } from "./limits.ts";
import {
  fetchBody,
  pushBody,
  readAnnounced,
  readFetched,
  readPushed,
  SERVICES,
  type Service,
} from "./wire.ts";

/** A git server's repository. It yields the parts of an answer, and throws typed errors. */
export interface Remote {
  announced(service: Service): AsyncIterable<Uint8Array>;
  ask(service: Service, body: Uint8Array): AsyncIterable<Uint8Array>;
}

/** Reads the whole history of a remote, or of one of its branches. Throws `NOT_FOUND` without the branch, and `INVALID_INPUT` without commits. */
export async function fetched(remote: Remote, branch?: string): Promise<Bundle> {
  const all = await readAnnounced(remote.announced(SERVICES.fetch), SERVICES.fetch);
  // A mirror of another deployment has branches of its conversations and runs.
  const isWanted = ({ name }: Reference) =>
    branch === undefined
      ? /^(?:HEAD$|refs\/(?:heads|tags)\/)/.test(name) && !OF_WORKSPACE.test(name)
      : name === HEADS + branch;
  const references = all.filter(isWanted);
  if (references.length > MAX_REFERENCES)
    throw tooLarge(`The remote has more than ${MAX_REFERENCES} branches and tags. Name a branch.`);
  if (references.length === 0)
    throw branch === undefined
      ? invalid("The remote has no commits yet. Push a commit to it first.")
      : notFound(`The remote has no branch ${JSON.stringify(branch)}.`);
  const answer = remote.ask(SERVICES.fetch, fetchBody(references.map(({ oid }) => oid)));
  return { references, pack: await readFetched(answer) };
}

/** Pushes a branch to a branch of a remote (REMOTE-2). Returns its commit. Throws `CONFLICT` if the remote has commits that the branch lacks. */
export async function pushed(
  remote: Remote,
  repository: GitRepository,
  branch: string,
  to: string,
): Promise<string> {
  const references = await readAnnounced(remote.announced(SERVICES.push), SERVICES.push);
  const name = HEADS + to;
  const from = references.find((each) => each.name === name)?.oid ?? null;
  const { oid, pack } = await repository.outgoing(
    branch,
    from,
    references.map((each) => each.oid),
  );
  if (oid === from) return oid;
  const reason = await readPushed(remote.ask(SERVICES.push, pushBody({ name, from, to: oid }, pack)), name);
  if (reason === undefined) return oid;
  throw conflict(`The remote refuses the push: ${reason}.`);
}
