/**
 * The uncommitted files of a conversation in its export and its import.
 *
 * BACKUP-18  A file has the uncommitted files of the conversation's own workspace, and the newest commit of its branch. Only authors export sensitive
 *            files. An import restores them if the project has the repository with that commit. Otherwise its answer names the repository.
 */
import {
  type LostFiles,
  type SavedFile,
  type SavedPiece,
  type SavedWorkspace,
  savedFileLine,
  savedWorkspace,
} from "../../../protocol/saved-workspace.ts";
import { workspaceOf } from "../../../protocol/workspace.ts";
import { fromBase64, toBase64 } from "../../../shared/base64.ts";
import { conflict, unwrap } from "../../../shared/errors.ts";
import { validate } from "../../../shared/validation.ts";
import type { ActorContext } from "../context.ts";
import { type ConversationIdentity, workspaceIn } from "../core/state.ts";

const NO_WORKSPACES =
  "The Worker has no workspaces. Export the class `Workspace`, and import the file again.";

export class ConversationFiles {
  constructor(private readonly context: Pick<ActorContext, "workspace" | "owner">) {}

  /** Yields the lines of the workspace, unless it is of a caller. Throws `CONFLICT` if it changes meanwhile. */
  async *lines(record: ConversationIdentity, mayUseSensitive: boolean): AsyncGenerator<object> {
    if (workspaceIn(record).id !== this.#id) return;
    const allowed = mayUseSensitive ? { mayUseSensitive: true as const } : {};
    let version: number | undefined;
    for (let from: number | undefined = 0; from !== undefined; ) {
      const workspace = await this.#workspace();
      const piece: SavedPiece | null | undefined =
        workspace && unwrap(await workspace.saved({ from, ...allowed }));
      if (!piece) return;
      if (version === undefined && piece.workspace.repositories.length > 0)
        yield { workspace: piece.workspace };
      version ??= piece.version;
      if (piece.version !== version)
        throw conflict("The files have changed during the export. Export again.", {
          retriable: true,
        });
      for (const file of piece.files) yield { file: lineOf(file) };
      from = piece.next;
    }
  }

  /** Restores the branches of a line. `null` deletes what an earlier import restored. Returns the repositories that were left out. */
  async restore(line: unknown): Promise<LostFiles[]> {
    const saved: SavedWorkspace | null =
      line === null ? null : validate(savedWorkspace, line, "", "The workspace");
    const workspace = await this.#workspace();
    const lost =
      workspace === undefined
        ? (saved?.repositories ?? []).map(({ repo }) => ({ repo, reason: NO_WORKSPACES }))
        : unwrap(await workspace.restore(saved));
    return lost.map((one) => ({ ...one, files: 0 }));
  }

  /** Restores the file of a line. Returns its repository if the file was left out. */
  async restoreFile(line: unknown): Promise<string | undefined> {
    const given = validate(savedFileLine, line, "", "The file");
    const { repo, path } = given;
    const file = "deleted" in given ? null : { mode: given.mode, content: fromBase64(given.base64) };
    const workspace = await this.#workspace();
    const isRestored = workspace !== undefined && unwrap(await workspace.restoreFile({ repo, path, file }));
    return isRestored ? undefined : repo;
  }

  get #id(): string {
    return workspaceOf({ conversationId: this.context.owner().conversationId }).id;
  }

  async #workspace() {
    return this.context.workspace?.(this.context.owner().tenant, this.#id);
  }
}

function lineOf({ repo, path, file }: SavedFile): object {
  if (file === null) return { repo, path, deleted: true };
  return { repo, path, mode: file.mode, base64: toBase64(file.content) };
}

/** Counts a file that was left out. */
export function withLost(lost: readonly LostFiles[], repo: string | undefined): LostFiles[] {
  return lost.map((one) => (one.repo === repo ? { ...one, files: one.files + 1 } : one));
}
