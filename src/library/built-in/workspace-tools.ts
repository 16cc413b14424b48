/** The tools of the platform's library for the files of a conversation: `repo_tree` … `repo_commit`, and `shell_exec`. */
import type { z } from "zod";
import {
  BACKGROUND_MS,
  COMMAND_MS,
  isRead,
  WORKSPACE_INPUTS,
  type WorkspaceKind,
} from "../../protocol/workspace.ts";
import type { JsonObject } from "../../shared/json.ts";
import { defineTool } from "../define/define.ts";

/** No tool merges: people do, and tasks of authors with the action `repo.merge`. */
type ToolKind = Exclude<WorkspaceKind, "repo.merge">;

const DESCRIPTIONS: Record<ToolKind, string> = {
  "repo.tree": "Lists the files of the repository, or of one of its folders.",
  "repo.read": "Reads a text file, with the number of each line. The numbers are not part of the file.",
  "repo.write": "Writes a whole file, and creates its folders. Use `repo_edit` for a change of a file.",
  "repo.edit":
    "Replaces an exact text in a file. Read the file first, and give enough text that it occurs once.",
  "repo.search": "Finds the lines with a text or a regular expression in all files.",
  "repo.diff":
    "Shows your changes as a unified difference, since the newest commit or since the branch began.",
  "repo.commit": "Commits all changes to the branch of this conversation. A person merges the branch.",
  "shell.start":
    "Starts a command of Bash in the background, such as a long build. It begins with the files as they are now. You get the result when the command ends, and its changed files then. One command runs at a time.",
  "shell.output":
    "Shows the state of the newest command in the background, and the end of its output so far.",
  "shell.stop": "Stops the command in the background. Its files stay as they were.",
  "shell.exec":
    "Runs a command of Bash in the repository: Unix tools such as grep, sed, awk, find, jq, and no compilers, no package managers and no network. Changed files stay.",
};

/** Time that the result of a command in the background has beyond the time of the command, in milliseconds. */
const DELIVERY_MS = 15 * 60_000;

/** The limit of the other operations, in milliseconds. */
const OPERATION_MS = 60_000;

export const WORKSPACE_TOOLS = (Object.keys(DESCRIPTIONS) as ToolKind[]).map((kind) =>
  defineTool({
    name: kind.replace(".", "_"),
    description: DESCRIPTIONS[kind],
    // SAFETY: one of the schemas, which are objects.
    input: (kind === "shell.start"
      ? WORKSPACE_INPUTS[kind].omit({ handle: true })
      : WORKSPACE_INPUTS[kind]) as z.ZodObject,
    effect: isRead(kind) ? "pure" : "idempotent",
    hosts: [],
    timeoutMs: kind === "shell.exec" || kind === "shell.start" ? COMMAND_MS.max + OPERATION_MS : OPERATION_MS,
    ...(kind === "shell.start" && { async: true }),
    execute: async (input, { workspace, operationId, defer }) => {
      if (kind === "shell.start") {
        const { timeoutMs = BACKGROUND_MS.default } = input as { timeoutMs?: number };
        const deferred = await defer({ expiresInMs: timeoutMs + DELIVERY_MS });
        const { handle } = deferred;
        await workspace.perform(kind, { ...(input as JsonObject), handle }, operationId);
        return deferred;
      }
      const result = await workspace.perform(kind, input as JsonObject, operationId);
      return kind === "repo.read" ? numbered(result) : result;
    },
  }),
);

/** Returns the result of a read with the number before each line. */
function numbered({ content, from, ...rest }: JsonObject): JsonObject {
  const lines = String(content).replace(/\n$/, "").split("\n");
  return { ...rest, lines: lines.map((line, index) => `${Number(from) + index}\t${line}`).join("\n") };
}
