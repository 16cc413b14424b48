/** The tools of the platform's library for the files of a conversation: `repo_tree` … `repo_commit`, and `shell_exec`. */
import type { z } from "zod";
import { COMMAND_MS, isRead, WORKSPACE_INPUTS, type WorkspaceKind } from "../../protocol/workspace.ts";
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
  "shell.exec":
    "Runs a command of Bash in the repository: Unix tools such as grep, sed, awk, find, jq, and no compilers, no package managers and no network. Changed files stay.",
};

/** The limit of the other operations, in milliseconds. */
const OPERATION_MS = 60_000;

export const WORKSPACE_TOOLS = (Object.keys(DESCRIPTIONS) as ToolKind[]).map((kind) =>
  defineTool({
    name: kind.replace(".", "_"),
    description: DESCRIPTIONS[kind],
    // SAFETY: one of the schemas, which are objects.
    input: WORKSPACE_INPUTS[kind] as z.ZodObject,
    effect: isRead(kind) ? "pure" : "idempotent",
    hosts: [],
    timeoutMs: kind === "shell.exec" ? COMMAND_MS.max + OPERATION_MS : OPERATION_MS,
    execute: async (input, { workspace, operationId }) => {
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
