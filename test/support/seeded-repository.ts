/** Repositories of projects in the stores of the test's Worker. */
import { env } from "cloudflare:workers";
import { D1Repositories } from "../../src/d1/repositories.ts";
import { GitRepository } from "../../src/git/git-repository.ts";
import { systemIds } from "../../src/ports/system.ts";
import { R2ObjectStore } from "../../src/ports/workers/r2-object-store.ts";

export const AUTHOR = { name: "Ada", email: "ada@example.com" };

/** Creates a project with the repository `app`, and a commit of files on `main`. */
export async function seededRepository(tenant: string, project: string, files: Record<string, string>) {
  // SAFETY: the configuration of the tests has these bindings.
  const { DB, BUCKET } = env as unknown as { DB: D1Database; BUCKET: R2Bucket };
  const rows = new D1Repositories(DB);
  await rows.createProject(tenant, { id: project, repositories: [{ id: "app", defaultBranch: "main" }] });
  const ports = { rows, objects: new R2ObjectStore(BUCKET), ids: systemIds };
  const git = new GitRepository(ports, { tenant, project, repo: "app" });
  const changes = new Map(
    Object.entries(files).map(([path, text]) => [path, { content: new TextEncoder().encode(text) }]),
  );
  const commit = { parents: [], changes, message: "Begin", author: AUTHOR, at: 1_000 };
  const made = await git.commit("main", null, commit);
  if (made === "moved") throw new Error("The branch exists.");
  return { git, begin: made.oid };
}
