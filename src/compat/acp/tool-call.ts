/**
 * The form of a tool's call in ACP: its title, its kind and its changes of files. Pure.
 *
 * ACP-2  A call with `path` and `content`, or with `path`, `before` and `after`, has a diff if its tool edits files. The path begins with `/` in
 *        the workspace of the agent. It names no file of the editor's machine, so a call has no `locations`.
 */
import type { ToolCallContent, ToolKind } from "@agentclientprotocol/sdk";
import type { AgentCallView } from "../../protocol/move-schemas.ts";
import { isPlainObject } from "../../shared/json.ts";

/** Words in names of tools, in the order in which they decide. */
const KINDS: readonly (readonly [ToolKind, RegExp])[] = [
  ["search", /^(?:search|find|grep|query)$/],
  ["delete", /^(?:delete|remove|forget)$/],
  ["move", /^(?:move|rename)$/],
  ["edit", /^(?:write|edit|patch|update)$/],
  ["execute", /^(?:exec|execute|run|shell|bash|commit)$/],
  ["fetch", /^(?:fetch|http|download|browse)$/],
  ["read", /^(?:read|list|tree|diff|recall|history)$/],
  ["think", /^(?:think|plan)$/],
];

/** Members of an input that say what a call is about. */
const SUBJECTS = ["path", "command", "query", "url", "expression"];

/** The longest subject in a title, in UTF-16 units. */
const MAX_SUBJECT = 80;

export function kindOf(name: string): ToolKind {
  const words = name.toLowerCase().split(/[^a-z]+/);
  return KINDS.find(([, word]) => words.some((one) => word.test(one)))?.[0] ?? "other";
}

export function titleOf(name: string, input: unknown, agent?: Pick<AgentCallView, "id">): string {
  if (agent !== undefined) return `${name} (agent ${agent.id})`;
  const members = isPlainObject(input) ? input : {};
  const subject = SUBJECTS.map((member) => members[member]).find((value) => typeof value === "string");
  const line = typeof subject === "string" ? subject.replace(/\s+/g, " ").trim() : "";
  if (line === "") return name;
  return `${name} ${line.length <= MAX_SUBJECT ? line : `${line.slice(0, MAX_SUBJECT - 1)}…`}`;
}

/** Returns the changes of files that the input of a call names (ACP-2). */
export function diffsOf(name: string, input: unknown): ToolCallContent[] {
  if (kindOf(name) !== "edit" || !isPlainObject(input)) return [];
  const { path, content, before, after } = input;
  if (typeof path !== "string") return [];
  const file = `/${path.replace(/^\/+/, "")}`;
  if (typeof before === "string" && typeof after === "string")
    return [{ type: "diff", path: file, oldText: before, newText: after }];
  return typeof content === "string" ? [{ type: "diff", path: file, oldText: null, newText: content }] : [];
}

export function textContent(value: unknown): ToolCallContent {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
  return { type: "content", content: { type: "text", text } };
}
