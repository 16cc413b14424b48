/**
 * The artifacts of a call.
 *
 * ARTCALL-1  A call reaches the artifacts of its own project, and of the other projects of its agent. The tenant and the projects come from the
 *            context of the call. A denial has the rule `project`.
 * ARTCALL-2  After a call reads artifacts, its writes to memory are tainted, as after a read of a tainted memory.
 */
import type { Artifacts } from "../../artifacts/artifacts.ts";
import { ToolError } from "../../library/tools/tool-error.ts";
import { isArtifactRead, type ToolArtifacts } from "../../protocol/artifacts.ts";
import type { ToolInvocation } from "../../protocol/executor-api.ts";
import { listIds } from "../../shared/known-ids.ts";
import type { CallTaint } from "./memory.ts";

/** Returns the artifacts that a call may use. Records in `taint` that it reads (ARTCALL-2). */
export function artifactsFor(
  artifacts: () => Artifacts,
  { context, projectIds = [context.projectId] }: Pick<ToolInvocation, "context" | "projectIds">,
  taint: CallTaint,
): ToolArtifacts {
  return {
    async perform(kind, { project: given, ...input }, key) {
      const project = given === undefined ? context.projectId : String(given);
      if (project !== context.projectId && !projectIds.includes(project))
        throw new ToolError(
          `The agent does not work in the project "${project}". Its projects: ${listIds(project, projectIds)}.`,
          { code: "PERMISSION_DENIED", rule: "project" },
        );
      const name = context.agentId ?? context.runId;
      const author = { name, email: `${name}@agents.invalid` };
      const result = await artifacts().perform({ tenant: context.tenant, project }, kind, input, {
        author,
        key,
      });
      if (isArtifactRead(kind)) taint.tainted = true;
      return result;
    },
  };
}
