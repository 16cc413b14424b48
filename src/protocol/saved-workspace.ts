/** The state of a workspace in the file of a conversation: the commits of its branch, and the uncommitted files. */
import { z } from "zod";
import type { Result } from "../shared/errors.ts";
import { definitionIdSchema } from "../shared/id-schemas.ts";

const commit = z
  .string()
  .regex(/^[0-9a-f]{40}$/, "Must be the id of a commit.")
  .nullable();

export const savedWorkspace = z.strictObject({
  project: definitionIdSchema,
  repositories: z
    .array(
      z.strictObject({
        repo: definitionIdSchema,
        /** The commit at which the branch began. */
        base: commit,
        /** The commit below the uncommitted files. */
        head: commit,
        /** The branch has commits of its own. */
        hasBranch: z.boolean(),
      }),
    )
    .max(100),
});

export type SavedWorkspace = z.infer<typeof savedWorkspace>;

const place = { repo: definitionIdSchema, path: z.string().min(1).max(1_024) };

/** An uncommitted file as a line of a file: its content, or its deletion. */
export const savedFileLine = z.union([
  z.strictObject({ ...place, mode: z.enum(["100644", "100755", "120000"]), base64: z.base64() }),
  z.strictObject({ ...place, deleted: z.literal(true) }),
]);

/** An uncommitted file; `null` if it is deleted. */
export interface SavedFile {
  repo: string;
  path: string;
  file: { mode: "100644" | "100755" | "120000"; content: Uint8Array } | null;
}

export interface SavedPiece {
  workspace: SavedWorkspace;
  /** Ascends with each operation. Pieces of one state have the same version. */
  version: number;
  files: SavedFile[];
  /** The number of the next file. Absent after the last piece. */
  next?: number;
}

export const lostFiles = z.strictObject({
  repo: z.string(),
  reason: z.string(),
  files: z.int().describe("Uncommitted files that were left out."),
});

/** A repository that an import did not restore. */
export type LostFiles = z.infer<typeof lostFiles>;

export interface WorkspaceDataApi {
  /** Returns a piece of the uncommitted files, from a number on; `null` for an unused workspace. */
  saved(options: { from: number; mayUseSensitive?: true }): Promise<Result<SavedPiece | null>>;
  /**
   * Replaces the workspace by the state of an export, without its files. Returns the repositories that cannot be restored. With `null`, the workspace
   * is unused afterwards.
   */
  restore(saved: SavedWorkspace | null): Promise<Result<Omit<LostFiles, "files">[]>>;
  /** Restores an uncommitted file. Returns `false` if its repository was not restored. `INVALID_INPUT`, `TOO_LARGE`. */
  restoreFile(file: SavedFile): Promise<Result<boolean>>;
}
