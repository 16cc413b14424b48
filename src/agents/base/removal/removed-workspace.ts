/** Deletes a workspace with its branch and its uncommitted files. */
import { isDestroyed } from "../../../protocol/destroyed.ts";
import type { WorkspaceApi } from "../../../protocol/workspace.ts";
import { unwrap } from "../../../shared/errors.ts";

/** Rejects if the workspace does not answer. Repeating it has no effect. */
export async function removeWorkspace(workspace: Pick<WorkspaceApi, "remove">): Promise<void> {
  try {
    unwrap(await workspace.remove());
  } catch (error) {
    if (!isDestroyed(error)) throw error;
  }
}
