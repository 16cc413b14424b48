/** Calls of the tools for files, as the console shows them. Pure. */
import type { OperationState } from "../../../src/client/index.ts";
import { type ChangeKind, type DiffFile, replacedText } from "./unified-diff.ts";

export interface ShellResult {
  exitCode: number;
  stdout: string;
  stderr: string;
  /** The paths of changed files. */
  changed: string[];
  isCut: boolean;
}

/** The view of a call, in place of its JSON. */
export type ToolView =
  | { type: "terminal"; command: string; result?: ShellResult }
  | { type: "diff"; diff: string; cut?: string }
  | { type: "edit"; file: DiffFile }
  | { type: "commit"; commit: string; changes: { path: string; change: ChangeKind }[] };

/** The member of the input that says most about a call. */
const MAIN_MEMBER: Readonly<Record<string, string>> = {
  shell_exec: "command",
  shell_start: "command",
  repo_commit: "message",
  repo_search: "query",
  repo_read: "path",
  repo_write: "path",
  repo_edit: "path",
  repo_diff: "path",
  repo_tree: "path",
};

/** Reports whether a tool works on the files of the conversation. */
export function isFileTool(name: string): boolean {
  return Object.hasOwn(MAIN_MEMBER, name);
}

/** Returns a line about a call of a tool for files; `undefined` for any other call. */
export function filePreview({ name, input }: Pick<OperationState, "name" | "input">): string | undefined {
  return isFileTool(name) ? (text(input, MAIN_MEMBER[name] ?? "") ?? undefined) : undefined;
}

/** Returns the repository that a call names; `undefined` for the first. */
export function repositoryOf({ input }: Pick<OperationState, "input">): string | undefined {
  return text(input, "repo");
}

/** Returns the view of a call. A call with an unknown form has no such view: a tool of an application may have the same name. */
export function toolView({
  name,
  input,
  result,
}: Pick<OperationState, "name" | "input" | "result">): ToolView | undefined {
  switch (name) {
    case "shell_start":
    case "shell_exec": {
      const command = text(input, "command");
      const shell = shellResult(result);
      if (command === undefined || (result !== undefined && shell === undefined)) return undefined;
      return { type: "terminal", command, ...(shell && { result: shell }) };
    }
    case "repo_diff": {
      const diff = text(result, "diff");
      const cut = text(result, "cut");
      return diff === undefined ? undefined : { type: "diff", diff, ...(cut && { cut }) };
    }
    case "repo_edit": {
      const [path, before, after] = ["path", "before", "after"].map((member) => text(input, member));
      if (path === undefined || before === undefined || after === undefined) return undefined;
      const line = memberOf(result, "line");
      return {
        type: "edit",
        file: replacedText(path, before, after, typeof line === "number" ? line : undefined),
      };
    }
    case "repo_commit": {
      const commit = text(result, "commit");
      const changes = memberOf(result, "changes");
      if (commit === undefined || !Array.isArray(changes)) return undefined;
      return { type: "commit", commit, changes: changes.filter(isChange) };
    }
    default:
      return undefined;
  }
}

function isChange(value: unknown): value is { path: string; change: ChangeKind } {
  const change = text(value, "change") ?? "";
  return text(value, "path") !== undefined && ["added", "modified", "deleted"].includes(change);
}

function shellResult(result: unknown): ShellResult | undefined {
  const [exitCode, changed] = [memberOf(result, "exitCode"), memberOf(result, "changed")];
  const [stdout, stderr] = [text(result, "stdout"), text(result, "stderr")];
  if (typeof exitCode !== "number" || stdout === undefined || stderr === undefined) return undefined;
  if (memberOf(result, "conflicts") !== undefined) return undefined;
  const paths = Array.isArray(changed) ? changed.filter((path) => typeof path === "string") : [];
  return { exitCode, stdout, stderr, changed: paths, isCut: memberOf(result, "isCut") === true };
}

function memberOf(value: unknown, member: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[member] : undefined;
}

function text(value: unknown, member: string): string | undefined {
  const found = memberOf(value, member);
  return typeof found === "string" ? found : undefined;
}
