/**
 * The rules of the real APIs for requests, as a server on loopback: it answers 400 with the reason, or streams `ok`.
 * The server also rejects input that only some of the APIs refuse, such as blank texts.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as textOf } from "node:stream/consumers";
import { isJsonObject, type Json, type JsonObject } from "../../src/shared/json.ts";

export interface StrictServer {
  url: string;
  close(): Promise<void>;
}

/** Throws the reason why an API refuses a body. */
type Rules = (body: JsonObject) => void;

/** Throws the reason why the API at a path refuses a body. */
export function checkByRules(path: string, body: JsonObject): void {
  const api = APIS.find(({ matches }) => matches.test(path));
  if (api === undefined) throw new Error(`no API at ${path}`);
  api.rules(body);
}

export async function startStrictServer(): Promise<StrictServer> {
  const server = createServer(async (request, response) => {
    const path = new URL(request.url ?? "/", "http://host").pathname;
    const body: unknown = JSON.parse(await textOf(request));
    const api = APIS.find(({ matches }) => matches.test(path));
    try {
      refuseIf(api === undefined || !isJsonObject(body), `no API at ${path}`);
      if (isJsonObject(body)) api?.rules(body);
    } catch (error) {
      const message = `${error instanceof Error ? error.message : error}: ${JSON.stringify(body)}`;
      response.writeHead(400, { "content-type": "application/json" });
      response.end(
        JSON.stringify({
          type: "error",
          error: { type: "invalid_request_error", message, code: 400, status: "INVALID_ARGUMENT" },
        }),
      );
      return;
    }
    for (const event of api?.reply ?? []) send(response, event);
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // SAFETY: a server that listens on TCP has an address.
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

function send(response: ServerResponse, event: JsonObject | string): void {
  if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream" });
  const named = isJsonObject(event) && typeof event.type === "string" ? `event: ${event.type}\n` : "";
  response.write(`${named}data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
}

function refuseIf(isWrong: boolean, why: string): void {
  if (isWrong) throw new Error(why);
}

function objects(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function member(value: Json | undefined, key: string): Json | undefined {
  return isJsonObject(value) ? value[key] : undefined;
}

function notBlank(text: Json | undefined, where: string): void {
  refuseIf(typeof text !== "string" || text.trim() === "", `a blank text in ${where}`);
}

function same(one: readonly unknown[], other: readonly unknown[], why: string): void {
  refuseIf(JSON.stringify([...one].sort()) !== JSON.stringify([...other].sort()), why);
}

/** Ids are plain and occur once; names are plain. */
function plainCalls(
  calls: readonly { id: Json | undefined; name: Json | undefined }[],
  idLength: number,
): void {
  refuseIf(new Set(calls.map(({ id }) => id)).size !== calls.length, "an id of a call twice");
  for (const { id, name } of calls) {
    refuseIf(!new RegExp(`^[A-Za-z0-9_-]{1,${idLength}}$`).test(String(id)), `the id ${id}`);
    refuseIf(!/^[A-Za-z0-9_-]{1,64}$/.test(String(name)), `the name ${name}`);
  }
}

function anthropic({ system, messages: given, max_tokens }: JsonObject): void {
  const messages = objects(given);
  refuseIf(typeof max_tokens !== "number", "no max_tokens");
  for (const { text } of objects(system)) notBlank(text, "system");
  refuseIf(messages.length === 0 || messages.at(-1)?.role !== "user", "no message of the user at the end");
  messages.forEach(({ role, content }, index) => {
    refuseIf(role !== (index % 2 === 0 ? "user" : "assistant"), "roles do not alternate");
    const blocks = objects(content);
    refuseIf(blocks.length === 0, "an empty message");
    for (const block of blocks) {
      if (block.type === "text") notBlank(block.text, "messages");
      if (block.type === "thinking") refuseIf(!block.signature, "thinking without a signature");
    }
    const asked = objects(messages[index - 1]?.content).filter(({ type }) => type === "tool_use");
    const results = blocks.filter(({ type }) => type === "tool_result");
    same(
      asked.map(({ id }) => id),
      results.map((result) => result.tool_use_id),
      "results do not follow their calls",
    );
    refuseIf(
      blocks.slice(0, results.length).some(({ type }) => type !== "tool_result"),
      "a result behind other content",
    );
  });
  const calls = messages.flatMap(({ content }) => objects(content)).filter(({ type }) => type === "tool_use");
  plainCalls(
    calls.map(({ id, name }) => ({ id, name })),
    64,
  );
}

function google({ systemInstruction, contents: given }: JsonObject): void {
  const contents = objects(given);
  for (const { text } of objects(member(systemInstruction, "parts"))) notBlank(text, "systemInstruction");
  refuseIf(
    contents[0]?.role !== "user" || contents.at(-1)?.role !== "user",
    "not the user's turns at the ends",
  );
  contents.forEach(({ role, parts: value }, index) => {
    const parts = objects(value);
    refuseIf(parts.length === 0, "a content without parts");
    for (const part of parts) {
      if ("text" in part && part.thoughtSignature === undefined) notBlank(part.text, "contents");
      const medium = part.fileData ?? part.inlineData;
      if (medium !== undefined)
        refuseIf(!/^\w+\/[\w.+-]+$/.test(String(member(medium, "mimeType"))), "no media type");
    }
    const before = contents[index - 1];
    const asked = objects(before?.parts).flatMap(({ functionCall: call }) =>
      call === undefined ? [] : [call],
    );
    const results = parts.flatMap(({ functionResponse: result }) => (result === undefined ? [] : [result]));
    const keys = (list: readonly Json[]) => list.map((one) => `${member(one, "id")} ${member(one, "name")}`);
    same(keys(asked), keys(results), "the number of function responses is not that of the calls");
    refuseIf(results.length > 0 && results.length < parts.length, "a result beside other parts");
    // A user may continue after results, which have no role of their own, and after another message.
    refuseIf(role === "model" && before?.role === "model", "roles do not alternate");
  });
}

function chat({ messages: given }: JsonObject): void {
  const messages = objects(given);
  refuseIf(messages.length === 0, "no messages");
  let waiting: Json[] = [];
  messages.forEach(({ role, content, tool_calls: calls, tool_call_id: id }, index) => {
    refuseIf(role === "system" && index > 0, "a system message in the middle");
    refuseIf(role !== "tool" && waiting.length > 0, "calls without results");
    if (role === "tool") {
      refuseIf(!waiting.includes(id ?? null), "a result without its call");
      waiting = waiting.filter((other) => other !== id);
    } else if (Array.isArray(content)) {
      refuseIf(content.length === 0, "an empty message");
      for (const { type, text } of objects(content)) if (type === "text") notBlank(text, "messages");
    } else if (calls === undefined) notBlank(content, "messages");
    waiting.push(...objects(calls).map((call) => call.id ?? null));
    plainCalls(
      objects(calls).map((call) => ({ id: call.id, name: member(call.function, "name") })),
      40,
    );
  });
  refuseIf(waiting.length > 0, "calls without results");
}

function responses({ input: given }: JsonObject): void {
  const items = objects(given);
  refuseIf(items.length === 0, "no input");
  const waiting = new Set<Json | undefined>();
  items.forEach(({ type, role, content, call_id: id }, index) => {
    refuseIf((role === "system" || role === "developer") && index > 0, "a system message in the middle");
    if (type === "function_call") waiting.add(id);
    else if (type === "function_call_output") refuseIf(!waiting.delete(id), "a result without its call");
    else {
      refuseIf(role === "user" && waiting.size > 0, "calls without results");
      if (typeof content === "string") notBlank(content, "input");
      for (const part of objects(content)) if ("text" in part) notBlank(part.text, "input");
    }
  });
  refuseIf(waiting.size > 0, "calls without results");
  const calls = items.filter(({ type }) => type === "function_call");
  plainCalls(
    calls.map(({ call_id, name }) => ({ id: call_id, name })),
    64,
  );
}

const RESPONSE: JsonObject = { id: "resp_1", created_at: 1, model: "m", output: [] };
const SAID: JsonObject = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  status: "completed",
  content: [],
};

const APIS: readonly { matches: RegExp; rules: Rules; reply: readonly (JsonObject | string)[] }[] = [
  {
    matches: /\/messages$/,
    rules: anthropic,
    reply: [
      {
        type: "message_start",
        message: {
          ...{ id: "msg_1", type: "message", role: "assistant", model: "m", content: [] },
          ...{ stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } },
        },
      },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "ok" } },
      { type: "content_block_stop", index: 0 },
      {
        type: "message_delta",
        delta: { stop_reason: "end_turn", stop_sequence: null },
        usage: { output_tokens: 1 },
      },
      { type: "message_stop" },
    ],
  },
  {
    matches: /:streamGenerateContent$/,
    rules: google,
    reply: [
      {
        candidates: [{ content: { role: "model", parts: [{ text: "ok" }] }, finishReason: "STOP", index: 0 }],
      },
    ],
  },
  {
    matches: /\/chat\/completions$/,
    rules: chat,
    reply: [
      {
        id: "c",
        created: 1,
        model: "m",
        choices: [{ index: 0, delta: { role: "assistant", content: "ok" }, finish_reason: null }],
      },
      { id: "c", created: 1, model: "m", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
      "[DONE]",
    ],
  },
  {
    matches: /\/responses$/,
    rules: responses,
    reply: [
      { type: "response.created", response: RESPONSE },
      { type: "response.output_item.added", output_index: 0, item: SAID },
      {
        type: "response.output_text.delta",
        output_index: 0,
        content_index: 0,
        item_id: "msg_1",
        delta: "ok",
      },
      { type: "response.output_item.done", output_index: 0, item: SAID },
      { type: "response.completed", response: { ...RESPONSE, usage: { input_tokens: 1, output_tokens: 1 } } },
    ],
  },
];
