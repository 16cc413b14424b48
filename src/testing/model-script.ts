/**
 * A model that follows a script.
 *
 * SCRIPT-1  Each request takes the next step of its agent's script, or of the common script. The same request again, after a failure or a crash,
 *           gets the same step. Without a step, `answer` decides.
 * SCRIPT-2  A request without a step fails its turn for good, and `missing` names it.
 * SCRIPT-3  A scripted call of a tool that the request does not offer, or with an input that does not fit, does the same, unless its reply is
 *           `unchecked`. `mistakes` names it.
 */
import type { ModelRequest } from "../model/gateway.ts";
import type { ModelDelta } from "../model/reply.ts";
import { isJsonObject, type Json, type JsonObject, type JsonValue } from "../shared/json.ts";
import { violations } from "../shared/json-schema/violations.ts";
import { listIds } from "../shared/known-ids.ts";
import { shorten } from "../shared/text.ts";
import { inUserCode } from "./world/user-code.ts";

interface ScriptedCall {
  name: string;
  input: JsonObject;
}

/** A reply of a scripted model. */
export interface ScriptedReply {
  text?: string;
  /** Calls of tools, by name. */
  calls?: readonly ScriptedCall[];
  /** Allows calls of tools that the agent lacks, and inputs that do not fit, as a real model may send them. */
  unchecked?: true;
  /** The message of an error that the provider answers instead. A retry gets the next step. */
  error?: string;
}

/** A message of a request, in the words of the Chat Completions format. */
export interface ScriptedMessage {
  role: string;
  content: string;
  toolCalls?: readonly { name: string; input: JsonValue }[];
}

/** A request to a scripted model. */
export interface ScriptedRequest {
  /** The agent that asks; absent for a task of a workflow. */
  agent?: string;
  conversationId?: string;
  turnId?: string;
  messages: readonly ScriptedMessage[];
  /** The names of the tools that the request offers. */
  tools: readonly string[];
}

/** A step of a script: a text, a reply, or a function of the request. */
export type ModelStep = string | ScriptedReply | ModelAnswer;
/** Answers requests. Return the same reply for the same request. */
export type ModelAnswer = (
  request: ScriptedRequest,
) => string | ScriptedReply | Promise<string | ScriptedReply>;

/** Returns a reply with a text. */
export function reply(text: string): ScriptedReply {
  return { text };
}

/**
 * Returns a reply that calls a tool.
 * @example app.model.script(call("charge", { order: "42" }), "It is paid.");
 */
export function call(name: string, input: JsonObject = {}): ScriptedReply {
  return { calls: [{ name, input }] };
}

/** A step, and the name of its calls. It is the same for the same request. */
interface NumberedStep {
  step: ModelStep;
  name: string;
}

/** The scripts of all models of a test app. */
export class ScriptedModel {
  readonly #agents = new Map<string, ScriptedModel>();
  readonly #steps: ModelStep[] = [];
  /** The steps of answered requests, by the request. */
  readonly #given = new Map<string, NumberedStep>();
  #count = 0;
  #answer: ModelAnswer | undefined;
  /** All requests, in order, with repeated requests. */
  readonly requests: ScriptedRequest[] = [];
  /** The requests that the script had no reply for. */
  readonly missing: string[] = [];
  /** The scripted calls that no model of the agent could make. */
  readonly mistakes: string[] = [];

  /** Adds steps. */
  script(...steps: readonly ModelStep[]): this {
    this.#steps.push(...steps);
    return this;
  }

  /** Adds a reply with a text. */
  reply(text: string): this {
    return this.script(reply(text));
  }

  /** Adds a reply that calls a tool. */
  call(name: string, input: JsonObject = {}): this {
    return this.script(call(name, input));
  }

  /** Answers all requests after the last step. */
  answer(answer: ModelAnswer): this {
    this.#answer = answer;
    return this;
  }

  /** Returns the script of one agent. Its steps come before the common steps. */
  of(agent: string): ScriptedModel {
    const script = this.#agents.get(agent) ?? new ScriptedModel();
    this.#agents.set(agent, script);
    return script;
  }

  /** Returns the step for a request; `undefined` without a step. */
  step(key: string, agent: string | undefined): NumberedStep | undefined {
    const own = agent === undefined ? undefined : this.#agents.get(agent)?.step(key, undefined);
    const known = own ?? this.#given.get(key);
    if (known !== undefined) return known;
    const step = this.#steps.shift() ?? this.#answer;
    if (step === undefined) return undefined;
    const numbered = { step, name: `call_${++this.#count}` };
    // An error is not repeated: its retry continues the script.
    if (typeof step !== "object" || step.error === undefined) this.#given.set(key, numbered);
    return numbered;
  }
}

export async function* scriptedStream(
  script: ScriptedModel,
  { body, context, profile }: ModelRequest,
): AsyncGenerator<ModelDelta> {
  const { agentId: agent, conversationId, turnId } = context;
  const request: ScriptedRequest = {
    ...(agent !== undefined && { agent }),
    ...(conversationId !== undefined && { conversationId }),
    ...(turnId !== undefined && { turnId }),
    messages: messagesIn(body),
    tools: toolsIn(body),
  };
  script.requests.push(request);
  const found = script.step(JSON.stringify([conversationId, turnId, body]), agent);
  if (found === undefined) {
    const who = agent === undefined ? "a task" : `the agent "${agent}"`;
    const message = `The script has no reply for request ${script.requests.length}, of ${who}. Add a step with \`app.model.reply(…)\`, or answer all requests with \`app.model.answer(…)\`.`;
    script.missing.push(message);
    yield failure(profile.provider, message, false);
    return;
  }
  const { step, name: prefix } = found;
  const given = typeof step === "function" ? await inUserCode(() => step(request)) : step;
  const {
    text,
    calls = [],
    error,
    unchecked,
  }: ScriptedReply = typeof given === "string" ? { text: given } : given;
  if (error !== undefined) {
    yield failure(profile.provider, error, true);
    return;
  }
  const [mistake] = unchecked ? [] : calls.flatMap((one) => mistakeIn(one, body, agent ?? "a task") ?? []);
  if (mistake !== undefined) {
    script.mistakes.push(mistake);
    yield failure(profile.provider, mistake, false);
    return;
  }
  if (text !== undefined) yield { type: "text", text };
  for (const [index, { name, input }] of calls.entries()) {
    const id = `${agent ?? "task"}_${prefix}_${index}`;
    yield { type: "tool-call", index, id, name, arguments: JSON.stringify(input) };
  }
  const usage = {
    inputTokens: tokensOf(JSON.stringify(body)),
    outputTokens: tokensOf(JSON.stringify(given)),
  };
  yield { type: "usage", usage };
  yield { type: "finish", reason: calls.length > 0 ? "tool_calls" : "stop" };
}

/** Returns the problem of a scripted call; `undefined` for a call that fits the request. */
function mistakeIn({ name, input }: ScriptedCall, { tools }: JsonObject, who: string): string | undefined {
  const offered = Array.isArray(tools) ? tools.map((tool) => objectOf(objectOf(tool).function)) : [];
  const found = offered.find((tool) => tool.name === name);
  if (found === undefined) {
    const names = listIds(
      name,
      offered.map((tool) => String(tool.name)),
    );
    return `The script calls "${name}", but "${who}" has no such tool. It has: ${names}. ${UNCHECKED}`;
  }
  if (!isJsonObject(found.parameters)) return undefined;
  // SAFETY: a model sends inputs as JSON.
  const [misfit] = violations(found.parameters as JsonObject, input as Json) ?? [];
  return misfit && `The script calls "${name}" with an input that does not fit. ${misfit}. ${UNCHECKED}`;
}

const UNCHECKED = "To test such a call, add `unchecked: true` to the reply.";

export function failure(
  provider: ModelRequest["profile"]["provider"],
  message: string,
  retriable: boolean,
): ModelDelta {
  const category = retriable ? "transient" : "validation";
  return { type: "error", error: { category, message, retriable, provider } };
}

const CHARACTERS_OF_TOKEN = 4;

function tokensOf(text: string): number {
  return Math.ceil(text.length / CHARACTERS_OF_TOKEN);
}

function messagesIn({ messages }: JsonObject): ScriptedMessage[] {
  if (!Array.isArray(messages)) return [];
  return messages.flatMap((message): ScriptedMessage[] => {
    const { role, content, tool_calls: calls } = objectOf(message);
    if (typeof role !== "string") return [];
    const toolCalls = Array.isArray(calls) ? calls.map((one) => callOf(objectOf(one).function)) : undefined;
    return [{ role, content: textIn(content), ...(toolCalls && { toolCalls }) }];
  });
}

function callOf(value: Json | undefined): { name: string; input: Json } {
  const { name, arguments: text } = objectOf(value);
  let input: Json = text ?? null;
  try {
    input = JSON.parse(String(text));
  } catch {
    // The model wrote arguments that are not JSON.
  }
  return { name: String(name), input };
}

function textIn(content: Json | undefined): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => objectOf(part).text ?? "").join("");
}

function toolsIn({ tools }: JsonObject): string[] {
  return Array.isArray(tools) ? tools.map((tool) => String(objectOf(objectOf(tool).function).name)) : [];
}

function objectOf(value: Json | undefined): Record<string, Json | undefined> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

/** Maximum characters of a reply in the history. */
const MAX_REPLY_TEXT = 200;

/** Returns a reply as text for the history of a world. */
export function replyText(deltas: readonly ModelDelta[]): string {
  const parts = deltas.map((delta) => {
    if (delta.type === "text") return delta.text;
    if (delta.type === "error") return `error: ${delta.error.message}`;
    return delta.type === "tool-call" ? `${delta.name ?? ""}(${delta.arguments ?? ""})` : "";
  });
  return shorten(parts.join(""), MAX_REPLY_TEXT);
}
