/** The commits and the branches of conversations and runs. Pure. */
import type { WorkspaceCommits, WorkspaceOwner, WorkspaceView } from "../../../src/client/index.ts";

export type Repository = WorkspaceView["repositories"][number];

export type Commit = WorkspaceCommits["commits"][number];

/** Returns the newest commits that are on the branch only. A merged branch has no such commits. */
export function ownCommits(commits: readonly Commit[], base: string | null): Commit[] {
  const begin = commits.findIndex(({ oid }) => oid === base);
  return commits.slice(0, begin === -1 ? commits.length : begin);
}

/** Returns the first line of a message, and the rest. */
export function messageParts(message: string): { title: string; body: string } {
  const [title = "", ...rest] = message.split("\n");
  return { title, body: rest.join("\n").trim() };
}

/** Returns the short form of the id of a commit. */
export function shortOid(oid: string): string {
  return oid.slice(0, 7);
}

/** Returns the conversation or the run of a branch; `undefined` for another branch. */
export function ownerOfBranch(name: string): WorkspaceOwner | undefined {
  const [, kind, id = ""] = /^[^/]+\/(conv|run)-(.+)$/.exec(name) ?? [];
  if (kind === undefined) return undefined;
  return kind === "run" ? { run: id } : { conversation: id };
}

/** Reports whether a branch has commits or changes of its own. */
export function hasWork(workspace: WorkspaceView | undefined): boolean {
  return (workspace?.repositories ?? []).some(
    ({ base, head, changes }) => head !== base || changes.length > 0,
  );
}
