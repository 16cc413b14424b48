/**
 * Answers a request of MCP by the SDK. Loaded with the first request, because the SDK is large.
 *
 * MCP-13  A request with another media type than JSON, with more than 100 messages, or with two calls of tools is refused before a message has
 *         an effect.
 */
import { createMcpHandler, type McpRequestContext } from "@modelcontextprotocol/server";
import { ulid } from "ulid";
import { givenAnswer } from "../../compat/mcp/questions.ts";
import { isPlainObject } from "../../shared/json.ts";
import { giveAnswers } from "./answers.ts";
import { cancelCall, canElicit, type McpRequest, SESSION_HEADER, WITH_FORMS } from "./call.ts";
import type { McpOptions } from "./options.ts";
import { type ClientMessage, mcpServer, nameIn } from "./server.ts";
import { isOurs } from "./tools.ts";

/** The code of the protocol for headers that differ from the body. */
const HEADER_MISMATCH = -32_020;
/** The code of JSON-RPC for a message that is no request. */
const INVALID_REQUEST = -32_600;
const MAX_MESSAGES = 100;

export async function answerMcp(
  raw: Request,
  body: unknown,
  request: McpRequest,
  options: McpOptions,
): Promise<Response> {
  const problem = requestProblem(raw, body);
  if (problem !== undefined) return problem;
  // Other values are no messages: the SDK refuses them.
  const messages: ClientMessage[] = [body].flat().filter(isMessage);
  for (const { method, params } of messages)
    if (method === "notifications/cancelled") await cancelCall(request, Object(params).requestId);
  const answers = messages.filter(({ method }) => method === undefined);
  await giveAnswers(
    request.ports,
    answers.flatMap(({ id, result }) => givenAnswer(id, result) ?? []),
  );
  const [mismatch] = messages.filter((message) => namesOtherTask(raw.headers, message));
  if (mismatch !== undefined) return headerMismatch(mismatch);
  let refused: { error: unknown } | undefined;
  const factory = ({ era }: McpRequestContext) =>
    mcpServer(request, messages, options, era).catch((error: unknown) => {
      refused = { error };
      throw error;
    });
  const handler = createMcpHandler(factory, { responseMode: messages.some(takesLong) ? "sse" : "auto" });
  const response = await handler.fetch(raw, { parsedBody: body });
  // The SDK would hide the reason.
  if (refused !== undefined) throw refused.error;
  const [beginning] = messages.filter(({ method }) => method === "initialize");
  return beginning !== undefined && response.ok ? withSession(response, beginning) : response;
}

function isMessage(value: unknown): value is ClientMessage {
  return isPlainObject(value) && value.jsonrpc === "2.0";
}

/**
 * Returns the refusal of a request before any of its messages has an effect: of another media type, which a foreign page could send, and of
 * a batch that would do the work of many requests.
 */
function requestProblem({ method, headers }: Request, body: unknown): Response | undefined {
  if (method !== "POST") return undefined;
  if (!/^application\/json\b/i.test(headers.get("content-type") ?? ""))
    return refusal(415, "The media type must be `application/json`.");
  if (!Array.isArray(body)) return undefined;
  if (body.length > MAX_MESSAGES) return refusal(400, `A batch has at most ${MAX_MESSAGES} messages.`);
  const calls = body.filter((one) => isPlainObject(one) && one.method === "tools/call");
  return calls.length > 1
    ? refusal(400, "A batch has at most one `tools/call`. Send each call alone.")
    : undefined;
}

function refusal(status: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", id: null, error: { code: INVALID_REQUEST, message } }, { status });
}

/** Turns and runs take long: a stream from the beginning keeps proxies from giving up. */
function takesLong(message: ClientMessage): boolean {
  const name = nameIn(message, "tools/call");
  return name !== undefined && isOurs(name);
}

/** Reports whether the header names another task than the message. The SDK compares only the names of tools, prompts and resources. */
function namesOtherTask(headers: Headers, { method, params }: ClientMessage): boolean {
  const name = headers.get("mcp-name");
  return String(method).startsWith("tasks/") && name !== null && name !== Object(params).taskId;
}

function headerMismatch({ id }: ClientMessage): Response {
  const message = "The header `Mcp-Name` must be the `taskId` of the body.";
  return Response.json({ jsonrpc: "2.0", id, error: { code: HEADER_MISMATCH, message } }, { status: 400 });
}

/** Names the session of a client of an older revision. The server stores no session: the name has the facts that later requests need. */
function withSession(response: Response, { params }: ClientMessage): Response {
  const named = new Response(response.body, response);
  named.headers.set(SESSION_HEADER, `${canElicit(Object(params).capabilities) ? WITH_FORMS : ""}${ulid()}`);
  return named;
}
