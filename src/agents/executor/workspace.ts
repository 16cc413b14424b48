/**
 * Accesses the workspace of a call by RPC to its actor. All ids come from the context of the call (WORKSPACE-1).
 *
 * WORKCALL-1  After a call reads files or runs a command, its writes to memory are tainted, as after a read of artifacts.
 */
import type { ToolInvocation } from "../../protocol/executor-api.ts";
import { isRead, type ToolWorkspace, type WorkspaceApi, workspaceOf } from "../../protocol/workspace.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import type { CallTaint } from "./memory.ts";

/** Returns the workspace of a call. `signal` cancels its running command. Records in `taint` that the call reads files (WORKCALL-1). */
export function workspaceFor(
  find: (tenant: string, id: string) => Promise<WorkspaceApi>,
  { context, skills }: Pick<ToolInvocation, "context" | "skills">,
  signal: AbortSignal,
  taint: CallTaint,
): ToolWorkspace {
  return {
    async perform(kind, input, key) {
      const { id, from } = workspaceOf(context);
      const workspace = await find(context.tenant, id);
      const name = context.agentId ?? context.runId;
      const author = { name, email: `${name}@agents.invalid` };
      // The command's actor ends the command. If the request is lost, its time limit does.
      const cancel = () => void workspace.cancel(key).catch(() => undefined);
      signal.addEventListener("abort", cancel, { once: true });
      try {
        const files = kind === "shell.exec" || kind === "shell.start" ? defined({ skills }) : {};
        const place = { project: context.projectId, ...defined({ from }) };
        const result = unwrap(await workspace.perform(place, { kind, input, key, author, ...files }));
        if (isRead(kind) || kind === "shell.exec") taint.tainted = true;
        return result;
      } finally {
        signal.removeEventListener("abort", cancel);
      }
    },
  };
}
