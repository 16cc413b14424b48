/** A request as the rules see it: the message to answer, and the messages before and after it. */
import { RECALLED } from "../../../library/memory/shown-memory.ts";
import { MESSAGE_DESCRIPTION, MODE_MEMBER } from "../../../library/tools/agent-tool.ts";
import { isJsonObject, type JsonObject, parseJson } from "../../../shared/json.ts";
import { membersOf } from "../common/json.ts";
import type { OfflineBody, OfflineMessage } from "./wire.ts";

export interface SeenResult {
  tool: string;
  text: string;
  failed: boolean;
}

export interface Colleague {
  tool: string;
  /** In lower case. */
  name: string;
  /** The model chooses the mode of a call. */
  hasModes: boolean;
}

export interface ToldMemory {
  id: string;
  content: string;
}

export interface View {
  /** The last user message, without the name of its speaker. */
  text: string;
  /** User messages before it, oldest first. */
  earlier: readonly string[];
  /** The memories that the request tells, the most relevant first. */
  memories: readonly ToldMemory[];
  /** Results after it, in order. */
  results: readonly SeenResult[];
  /** Number of replies with tool calls after it. */
  rounds: number;
  /** The last message, if it is a system message: a report of the platform. */
  notice: string | undefined;
  /** Results of background operations at the end. They start a new cycle. */
  outcomes: readonly SeenResult[];
  persona: string;
  tools: OfflineBody["tools"];
  /** The agents behind its tools that take a message. */
  colleagues: readonly Colleague[];
  /** Another agent called or mentioned this agent. */
  isCalled: boolean;
  mayCallTools: boolean;
  /** The tool that must be called now, and the schema of its arguments. */
  forced: { tool: string; schema: JsonObject } | undefined;
  /** The schema that the answer must fit. */
  output: JsonObject | undefined;
  offers(tool: string): boolean;
}

export function viewOf({ messages, tools, toolChoice, output }: OfflineBody): View {
  const last = messages.findLastIndex(({ role }) => role === "user");
  const since = messages.slice(last + 1);
  const mayCallTools = toolChoice !== "none";
  const end = last >= 0 ? since.at(-1) : undefined;
  return {
    text: withoutSpeaker(messages[last]?.text ?? ""),
    earlier: messages
      .slice(0, Math.max(last, 0))
      .flatMap(({ role, text }) => (role === "user" ? [withoutSpeaker(text)] : [])),
    memories: memoriesBefore(messages, last),
    results: resultsOf(since),
    rounds: since.filter(({ calls = [] }) => calls.length > 0).length,
    outcomes: outcomesAtEnd(last >= 0 ? since : []),
    persona: messages[0]?.role === "system" ? messages[0].text : "",
    tools,
    colleagues: tools.flatMap(colleagueOf),
    isCalled: tools.some(({ name }) => name === "decline" || name === "stay_silent"),
    notice: end?.role === "system" ? end.text : undefined,
    mayCallTools,
    forced: forcedTool(tools, toolChoice),
    output: output?.schema,
    offers: (tool) => mayCallTools && tools.some(({ name }) => name === tool),
  };
}

function forcedTool(tools: OfflineBody["tools"], choice: OfflineBody["toolChoice"]): View["forced"] {
  if (choice === "auto" || choice === "none") return undefined;
  const tool = tools.find(({ name }) => choice === "required" || name === choice.name);
  return tool && { tool: tool.name, schema: tool.inputSchema };
}

/** Returns the memories of the note before the message at `last`: a line of JSON each. */
function memoriesBefore(messages: readonly OfflineMessage[], last: number): ToldMemory[] {
  const note = messages
    .slice(0, Math.max(last, 0))
    .findLast(({ role, text }) => role === "system" && text.startsWith(RECALLED));
  const [, ...lines] = note?.text.split("\n") ?? [];
  return lines.flatMap((line) => {
    const { id, content } = membersOf(parseJson(line));
    return typeof id === "string" && typeof content === "string" ? [{ id, content }] : [];
  });
}

/** Returns a message without the name of its speaker. */
function withoutSpeaker(text: string): string {
  return text.replace(/^(?:user|agent) "(?:[^"\\]|\\.)*": /, "");
}

/** The tool of an agent has a message, with a mode or as an agent's tool describes it. `ask_legal_team` asks the legal team. */
function colleagueOf({ name, inputSchema: { properties } }: OfflineBody["tools"][number]): Colleague[] {
  if (!isJsonObject(properties) || !isJsonObject(properties.message)) return [];
  const hasModes = MODE_MEMBER in properties;
  if (!hasModes && properties.message.description !== MESSAGE_DESCRIPTION) return [];
  const agent = name.replace(/^(?:ask|call|consult|invite|tell)[_-]/i, "");
  return [{ tool: name, name: agent.replace(/[_-]+/g, " ").toLowerCase(), hasModes }];
}

/** The results in the system messages at the end. Empty if a message contains anything else. */
function outcomesAtEnd(messages: readonly OfflineMessage[]): SeenResult[] {
  const end = messages.slice(messages.findLastIndex(({ role }) => role !== "system") + 1);
  const results = end.flatMap(({ text }) => {
    const [, tool, failed, result] =
      /^The operation \S+ \("([^"]+)"\), which ran in the background, has (?:completed|(failed))\b[^\n]*\n([\s\S]*)$/.exec(
        text,
      ) ?? [];
    return tool === undefined || result === undefined
      ? []
      : [{ tool, text: result, failed: failed !== undefined }];
  });
  return results.length === end.length ? results : [];
}

function resultsOf(messages: readonly OfflineMessage[]): SeenResult[] {
  const names = new Map(
    messages.flatMap(({ calls = [] }) => calls.map(({ id, name }) => [id, name] as const)),
  );
  return messages.flatMap(({ role, text, name = "the tool", callId = "", failed = false }) =>
    role === "tool" ? [{ tool: names.get(callId) ?? name, text, failed }] : [],
  );
}
