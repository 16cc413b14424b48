/** The storage of a workspace: its branches, the changed files, a commit in progress, and results of the newest operations. */
import type { Clock } from "../../ports/clock.ts";
import type { ToolOutcome } from "../../protocol/requests.ts";
import type { CommitAuthor } from "../../protocol/workspace.ts";
import { conflict, type DramatisError } from "../../shared/errors.ts";
import type { JsonObject } from "../../shared/json.ts";
import { dropTables } from "../base/removal/actor-tables.ts";
import { type ActorSchema, type ActorStores, VersionedRecord } from "../base/storage/schema-upgrade.ts";
import type { Changes, FileMode, TreeFile } from "./core/working-tree.ts";

const SCHEMA: ActorSchema = { of: "workspace", first: 1, steps: [] };
const RECORD_KEY = "workspace";
const PENDING_KEY = "commit";
const REMOVED_KEY = "removed";
const COMMAND_KEY = "command";
const VERSION_KEY = "version";
const MADE_KEY = "made";
const KEYS = [RECORD_KEY, PENDING_KEY, VERSION_KEY, MADE_KEY, COMMAND_KEY];
/** Results are kept for repeated calls: the newest, and those of the last hour up to a number. */
const [MIN_RECEIPTS, MAX_RECEIPTS] = [50, 500];
const RECEIPT_MS = 60 * 60 * 1_000;

const TABLES = [
  `CREATE TABLE IF NOT EXISTS branches (repo TEXT PRIMARY KEY, since INTEGER NOT NULL, base TEXT, head TEXT, created INTEGER NOT NULL) WITHOUT ROWID`,
  "CREATE TABLE IF NOT EXISTS changes (repo TEXT NOT NULL, path TEXT NOT NULL, mode TEXT, content BLOB, PRIMARY KEY (repo, path))",
  "CREATE TABLE IF NOT EXISTS receipts (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at INTEGER NOT NULL, result TEXT NOT NULL)",
];
const BRANCHES = "SELECT repo, since, base, head, created FROM branches ORDER BY repo";
const PUT_BRANCH =
  "INSERT OR REPLACE INTO branches (repo, since, base, head, created) VALUES (?, ?, ?, ?, ?)";
const DELETE_BRANCH = "DELETE FROM branches WHERE repo = ?";
const CHANGES = "SELECT path, mode, content FROM changes WHERE repo = ?";
const PUT_CHANGE = "INSERT OR REPLACE INTO changes (repo, path, mode, content) VALUES (?, ?, ?, ?)";
const DELETE_CHANGE = "DELETE FROM changes WHERE repo = ? AND path = ?";
const DELETE_CHANGES = "DELETE FROM changes WHERE repo = ?";
const RECEIPT = "SELECT result FROM receipts WHERE id = ?";
const PUT_RECEIPT = "INSERT OR REPLACE INTO receipts (id, at, result) VALUES (?, ?, ?)";
const DELETE_RECEIPT = "DELETE FROM receipts WHERE id = ?";
/** `?1` is the beginning of ids. A digit after it would be another number. */
const FORGET_RECEIPTS =
  "DELETE FROM receipts WHERE substr(id, 1, length(?1)) = ?1 AND substr(id, length(?1) + 1, 1) NOT GLOB '[0-9]'";
const FORGET = `DELETE FROM receipts WHERE n <= (SELECT max(n) FROM receipts) - ${MIN_RECEIPTS}
  AND (at < ?1 OR n <= (SELECT max(n) FROM receipts) - ${MAX_RECEIPTS})`;

export interface WorkspaceRecord {
  project: string;
  /** The branch in each repository. A later prefix of branches changes no existing workspace. */
  branch: string;
  /** The workspace with the branch of its start. Absent: the default branch. */
  from?: string;
}

export interface BranchRow {
  repo: string;
  /** The time of the repository's creation, in milliseconds since the epoch. */
  since: number;
  /** The commit at which the branch began; `null` in an empty repository. */
  base: string | null;
  /** The commit below the changed files. */
  head: string | null;
  /** The repository has the branch: 1, or 0 before the first commit. */
  created: number;
}

export interface MadeBranch extends Pick<BranchRow, "repo" | "since"> {
  at: string;
}

/** A commit that the repository may already have. */
export interface PendingCommit {
  repo: string;
  receipt: string;
  message: string;
  author: CommitAuthor;
  /** Milliseconds since the epoch. */
  at: number;
}

/** The newest command in the background. */
export interface BackgroundCommand {
  /** The key of the call. */
  id: string;
  repo: string;
  /** The time of the repository's creation, in milliseconds since the epoch. */
  since: number;
  command: string;
  timeoutMs: number;
  /** Milliseconds since the epoch. */
  startedAt: number;
  /** The handle of the operation that gets the outcome. Absent after the delivery. */
  handle?: string;
  /** When the handle expires, in milliseconds since the epoch. */
  expiresAt: number;
  /** Absent while the command runs. */
  outcome?: ToolOutcome;
}

export function deletedMeanwhile(repo: string): DramatisError {
  return conflict(`The repository "${repo}" was deleted during the operation.`);
}

export class WorkspaceStore {
  readonly #record: VersionedRecord<WorkspaceRecord>;

  constructor(private readonly stores: ActorStores & { clock: Pick<Clock, "now"> }) {
    this.#record = new VersionedRecord(SCHEMA, stores, RECORD_KEY);
  }

  /** The record; `undefined` before the first use. Throws `UNAVAILABLE` for storage of a newer release. */
  get record(): WorkspaceRecord | undefined {
    return this.#record.get();
  }

  /** The workspace was deleted with its conversation or its run. Late calls do not begin it again (WORKSPACE-9). */
  get isRemoved(): boolean {
    return this.stores.keyValue.get(REMOVED_KEY) !== undefined;
  }

  /** Deletes all but the note that the workspace was deleted. */
  remove(): void {
    const { database, keyValue } = this.stores;
    database.transaction(() => {
      dropTables(this.stores);
      for (const key of KEYS) keyValue.delete(key);
      keyValue.put(REMOVED_KEY, 1);
    });
  }

  /** Deletes everything, also the note of a deletion. */
  reset(): void {
    const { database, keyValue } = this.stores;
    database.transaction(() => {
      dropTables(this.stores);
      for (const key of [...KEYS, REMOVED_KEY]) keyValue.delete(key);
    });
  }

  /** Ascends with each operation that changes files. */
  get version(): number {
    return this.stores.keyValue.get<number>(VERSION_KEY) ?? 0;
  }

  /** The branches that an import makes. Others may already have another branch of the name. */
  get made(): readonly MadeBranch[] {
    return this.stores.keyValue.get<MadeBranch[]>(MADE_KEY) ?? [];
  }

  noteMade(branch: MadeBranch): void {
    this.stores.keyValue.put(MADE_KEY, [...this.made, branch]);
  }

  create(record: WorkspaceRecord): void {
    this.stores.database.transaction(() => {
      for (const table of TABLES) this.stores.database.run(table);
      this.#record.put(record);
    });
  }

  branches(): BranchRow[] {
    return this.stores.database.all<{
      repo: string;
      since: number;
      base: string | null;
      head: string | null;
      created: number;
    }>(BRANCHES);
  }

  putBranch({ repo, since, base, head, created }: BranchRow): void {
    this.stores.database.run(PUT_BRANCH, repo, since, base, head, created);
  }

  forgetRepository(repo: string): void {
    const { database, keyValue } = this.stores;
    database.transaction(() => {
      database.run(DELETE_BRANCH, repo);
      database.run(DELETE_CHANGES, repo);
      if (this.pending?.repo === repo) keyValue.delete(PENDING_KEY);
    });
  }

  changes(repo: string): Changes {
    const rows = this.stores.database.all<{ path: string; mode: string | null; content: Uint8Array | null }>(
      CHANGES,
      repo,
    );
    return new Map(
      rows.map(({ path, mode, content }) => [
        path,
        // SAFETY: only `save` writes this column.
        mode === null ? null : { mode: mode as FileMode, content: content ?? new Uint8Array() },
      ]),
    );
  }

  /** Stores the change of a file; `null` is a deletion. Without a change, the file is as in the commit. */
  putChange(repo: string, path: string, file: TreeFile | null | undefined): void {
    const { database } = this.stores;
    if (file === undefined) database.run(DELETE_CHANGE, repo, path);
    else database.run(PUT_CHANGE, repo, path, file?.mode ?? null, file?.content ?? null);
    this.#ascend();
  }

  receipt(id: string): JsonObject | undefined {
    const [row] = this.stores.database.all<{ result: string }>(RECEIPT, id);
    return row && JSON.parse(row.result);
  }

  /** Stores the changes of an operation with its result, in one transaction. Throws `CONFLICT` if the repository was deleted meanwhile. */
  save(
    { repo, since }: BranchRow,
    before: Changes,
    after: Changes,
    receipt: string,
    result: JsonObject,
    command?: BackgroundCommand,
  ): void {
    if (!this.branches().some((branch) => branch.repo === repo && branch.since === since))
      throw deletedMeanwhile(repo);
    const { database } = this.stores;
    database.transaction(() => {
      for (const path of before.keys()) if (!after.has(path)) database.run(DELETE_CHANGE, repo, path);
      for (const [path, file] of after)
        if (before.get(path) !== file)
          database.run(PUT_CHANGE, repo, path, file?.mode ?? null, file?.content ?? null);
      this.#addReceipt(receipt, result);
      if (command !== undefined) this.putCommand(command);
    });
  }

  get command(): BackgroundCommand | undefined {
    return this.stores.keyValue.get(COMMAND_KEY);
  }

  putCommand(command: BackgroundCommand): void {
    this.stores.keyValue.put(COMMAND_KEY, command);
  }

  /** Stores a command before it starts, with the result of its call. `arm` sets the wake-up, in the same transaction. */
  beginCommand(command: BackgroundCommand, receipt: string, result: JsonObject, arm: () => void): void {
    this.stores.database.transaction(() => {
      this.putCommand(command);
      this.#addReceipt(receipt, result);
      arm();
    });
  }

  /** Deletes a command that did not start. */
  dropCommand(receipt: string): void {
    this.stores.database.transaction(() => {
      this.stores.keyValue.delete(COMMAND_KEY);
      this.stores.database.run(DELETE_RECEIPT, receipt);
    });
  }

  /** Deletes the results of operations whose keys begin with the id of a call. */
  forget(callId: string): void {
    if (this.record === undefined) return;
    this.stores.database.run(FORGET_RECEIPTS, callId);
    if (this.commandOf(callId) !== undefined) this.stores.keyValue.delete(COMMAND_KEY);
  }

  /** Returns the newest command if a call started it. The key of the command is the id of its call, or the id with a suffix that is no digit. */
  commandOf(callId: string): BackgroundCommand | undefined {
    const { command } = this;
    const isOf = command?.id.startsWith(callId) && !/^\d/.test(command.id.slice(callId.length));
    return isOf ? command : undefined;
  }

  get pending(): PendingCommit | undefined {
    return this.stores.keyValue.get(PENDING_KEY);
  }

  begin(commit: PendingCommit): void {
    this.stores.keyValue.put(PENDING_KEY, commit);
  }

  /** Ends the pending commit. With `done`, stores its branch and result, and drops the changed files of its repository. */
  end(done?: { branch: BranchRow; receipt: string; result: JsonObject }): void {
    const { database, keyValue } = this.stores;
    database.transaction(() => {
      keyValue.delete(PENDING_KEY);
      if (done === undefined) return;
      this.putBranch(done.branch);
      database.run(DELETE_CHANGES, done.branch.repo);
      this.#addReceipt(done.receipt, done.result);
    });
  }

  #addReceipt(id: string, result: JsonObject): void {
    const now = this.stores.clock.now();
    this.stores.database.run(PUT_RECEIPT, id, now, JSON.stringify(result));
    this.stores.database.run(FORGET, now - RECEIPT_MS);
    this.#ascend();
  }

  #ascend(): void {
    this.stores.keyValue.put(VERSION_KEY, this.version + 1);
  }
}
