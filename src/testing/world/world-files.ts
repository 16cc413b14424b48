/** The repositories, workspaces and artifacts of a test world, in memory. They survive crashes of actors. */
import type { WaitingOperations } from "../../agents/workspace/background.ts";
import { type WorkspacePorts, WorkspaceRuntime } from "../../agents/workspace/runtime.ts";
import { embeddedShell } from "../../agents/workspace/shell/shell.ts";
import { Artifacts } from "../../artifacts/artifacts.ts";
import { ArtifactTypes } from "../../artifacts/types.ts";
import { D1Artifacts } from "../../d1/artifacts.ts";
import { D1Repositories } from "../../d1/repositories.ts";
import { type DeclaredProject, declareProjects } from "../../git/declared-projects.ts";
import { Projects } from "../../git/projects.ts";
import { sensitiveFiles } from "../../policy/globs.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ids } from "../../ports/ids.ts";
import { MemoryObjectStore } from "../../ports/node/memory-object-store.ts";
import { nodeD1 } from "../../ports/node/node-d1.ts";
import { NodeKeyValue } from "../../ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../ports/node/node-sql-database.ts";
import type { ArtifactType } from "../../protocol/artifacts.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";

export interface FilesOptions {
  projects?: readonly DeclaredProject[];
  artifactTypes?: readonly ArtifactType[];
  workspaces?: { branchPrefix?: string; sensitiveFiles?: readonly string[] };
}

export class WorldFiles {
  readonly #databases: NodeSqlDatabase[] = [];
  readonly #projects: Projects;
  readonly #artifacts: Artifacts;
  readonly #workspaces = new Map<string, WorkspaceRuntime>();
  readonly #workspacePorts: Omit<WorkspacePorts, "stores" | "id" | "arm">;
  /** Resolves when the declared projects are there. */
  #ready: Promise<void> | undefined;

  constructor(
    private readonly clock: Clock,
    ids: Ids,
    tenant: string,
    private readonly options: FilesOptions,
    operations: WaitingOperations,
  ) {
    const database = nodeD1(this.#database());
    const git = { rows: new D1Repositories(database, clock), objects: new MemoryObjectStore(), ids };
    const types = new ArtifactTypes(options.artifactTypes ?? [], undefined);
    this.#projects = new Projects(git);
    this.#artifacts = new Artifacts({ git, index: new D1Artifacts(database, clock), types, clock });
    this.#workspacePorts = {
      projects: () => this.#projects,
      shell: embeddedShell,
      branchPrefix: options.workspaces?.branchPrefix ?? "dramatis",
      isSensitive: sensitiveFiles(options.workspaces?.sensitiveFiles),
      ...{ clock, operations },
      tenant: () => tenant,
    };
  }

  async workspace(id: string): Promise<WorkspaceRuntime> {
    await this.#declared();
    const known = this.#workspaces.get(id);
    if (known !== undefined) return known;
    const database = this.#database();
    const stores = { database, keyValue: new NodeKeyValue(database) };
    const arm = async (milliseconds: number) => {
      this.clock.timer(milliseconds, () => {
        const again = workspace.wake();
        if (again !== null) void arm(again);
      });
    };
    const workspace: WorkspaceRuntime = new WorkspaceRuntime({
      ...this.#workspacePorts,
      ...{ stores, id: () => id, arm },
    });
    this.#workspaces.set(id, workspace);
    return workspace;
  }

  /** Returns a text file of a workspace; `null` without the file. */
  async read(id: string, project: string, path: string, repo?: string): Promise<string | null> {
    const author = { name: "test", email: "test@users.invalid" };
    const input = { path, ...defined({ repo }) };
    const call = {
      kind: "repo.read",
      input,
      key: "test",
      author,
      isForPerson: true,
      mayUseSensitive: true,
    } as const;
    const found = await (await this.workspace(id)).perform({ project }, call);
    return !found.ok && found.error.code === "NOT_FOUND" ? null : String(unwrap(found).content);
  }

  async artifacts(): Promise<Artifacts> {
    await this.#declared();
    return this.#artifacts;
  }

  close(): void {
    for (const database of this.#databases) database.close();
  }

  #declared(): Promise<void> {
    this.#ready ??= declareProjects(this.#projects, this.options.projects ?? [], this.clock.now());
    return this.#ready;
  }

  #database(): NodeSqlDatabase {
    const database = new NodeSqlDatabase();
    this.#databases.push(database);
    return database;
  }
}
