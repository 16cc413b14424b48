/**
 * The action `http.request`.
 *
 * HTTP-1  Every address is checked against the action's hosts before it is asked: the first one, and that of each redirect. A request that
 *         is redirected to another origin keeps only headers that say how to answer, and one with a body is not redirected there.
 * HTTP-2  A response has at most `MAX_HTTP_RESPONSE_BYTES`; a larger one is an error, without reading on.
 * HTTP-4  A request of an `idempotent` action carries the idempotency key of its step, the same in all attempts, unless its input gives one.
 * HTTP-3  No answer, 408, 429 and 5xx are errors that may pass. Any other status is a result, whose body is a text where it is no JSON
 *         that a result may hold.
 * HTTP-5  A request that HTTP cannot carry is refused before it is sent, and no further attempt is made.
 */
import { z } from "zod";
import { addressProblem } from "../../../library/tasks/host-rules.ts";
import { MAX_HTTP_REDIRECTS, MAX_HTTP_RESPONSE_BYTES } from "../../../library/tasks/task-limits.ts";
import { ToolError } from "../../../library/tools/tool-error.ts";
import type { HttpRequestAction } from "../../../protocol/task-definition.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonWithin, type Json, type JsonObject, MAX_DEPTH, parseJson } from "../../../shared/json.ts";
import { inputIssues, issuesText } from "../../../shared/validation.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] as const;
/** Methods that change nothing and send no body. */
const READS: ReadonlySet<string> = new Set(["GET", "HEAD"]);
/** Headers that hold no secret of an origin. */
const PLAIN_HEADERS = new Set(["accept", "accept-language", "user-agent"]);
/** Headers of a response that are no result. */
const DROPPED_HEADERS = new Set(["set-cookie", "set-cookie2"]);
/** Statuses of redirects that ask the new address with `GET`, unless the request was `HEAD`. */
const TO_GET = new Set([301, 302, 303]);
const REDIRECTS = new Set([...TO_GET, 307, 308]);
const MAY_PASS = new Set([408, 429]);

const inputSchema = z.strictObject({
  url: z.string(),
  method: z.enum(METHODS).default("GET"),
  headers: z.record(z.string(), z.string()).default({}),
  body: z.json().optional(),
});

interface Sent {
  url: URL;
  method: string;
  headers: Headers;
  body?: string;
}

/** Returns `{status, headers, body}`. Throws `ToolError`. */
export async function requestHttp(
  { hosts, effect = "once" }: Pick<HttpRequestAction, "hosts" | "effect">,
  input: Json,
  { signal, idempotencyKey }: { signal: AbortSignal; idempotencyKey: string },
): Promise<JsonObject> {
  let sent = requestOf(input);
  if (effect === "idempotent" && !sent.headers.has("idempotency-key"))
    carried(
      "Its idempotency key has characters that HTTP does not allow. Use letters, digits and marks of ASCII.",
      () => sent.headers.set("idempotency-key", idempotencyKey),
    );
  for (let redirects = 0; ; redirects++) {
    const problem = addressProblem(sent.url, hosts);
    if (problem !== null) throw new ToolError(problem, { code: "PERMISSION_DENIED" });
    const response = await answerTo(sent, signal);
    const next = redirectOf(sent, response);
    if (next === null) return resultOf(response);
    await response.body?.cancel();
    if (redirects >= MAX_HTTP_REDIRECTS)
      throw new ToolError(`It was redirected more than ${MAX_HTTP_REDIRECTS} times.`);
    sent = next;
  }
}

function requestOf(input: Json): Sent {
  const parsed = inputSchema.safeParse(input);
  if (!parsed.success)
    throw new ToolError(`Its input is not valid: ${issuesText(inputIssues(parsed.error))}`, {
      code: "INVALID_INPUT",
    });
  const { url: address, method, headers: given, body } = parsed.data;
  const url = URL.parse(address);
  if (url === null) throw new ToolError("Its `url` is no address.", { code: "INVALID_INPUT" });
  const headers = carried(
    "A header has a name or a value that HTTP does not allow.",
    () => new Headers(given),
  );
  if (body === undefined) return { url, method, headers };
  if (READS.has(method))
    throw new ToolError(
      `A request with \`${method}\` has no \`body\`. Name a method that sends one, such as \`POST\`.`,
      {
        code: "INVALID_INPUT",
      },
    );
  if (typeof body !== "string" && !headers.has("content-type"))
    headers.set("content-type", "application/json");
  return { url, method, headers, body: typeof body === "string" ? body : JSON.stringify(body) };
}

/** Returns what is made of parts of a request. Throws `INVALID_INPUT` with the message where HTTP cannot carry them. */
function carried<Made>(message: string, make: () => Made): Made {
  try {
    return make();
  } catch (cause) {
    throw new ToolError(message, { code: "INVALID_INPUT", cause });
  }
}

async function answerTo({ url, method, headers, body }: Sent, signal: AbortSignal): Promise<Response> {
  try {
    return await fetch(url, { method, headers, signal, redirect: "manual", ...defined({ body }) });
  } catch (cause) {
    if (signal.aborted) throw signal.reason;
    throw new ToolError(`"${url.host}" did not answer.`, { retriable: true, cause });
  }
}

/** Returns the request to the address of a redirect; `null` where there is none. */
function redirectOf(
  { url, method, headers, body }: Sent,
  { status, headers: answered }: Response,
): Sent | null {
  const location = answered.get("location");
  if (!REDIRECTS.has(status) || location === null) return null;
  const next = URL.parse(location, url);
  if (next === null) throw new ToolError("It was redirected to what is no address.");
  const isElsewhere = next.origin !== url.origin;
  const kept = new Headers([...headers].filter(([name]) => !isElsewhere || PLAIN_HEADERS.has(name)));
  if (TO_GET.has(status) && !READS.has(method)) {
    kept.delete("content-type");
    return { url: next, method: "GET", headers: kept };
  }
  if (isElsewhere && !READS.has(method))
    throw new ToolError(
      `It was redirected to "${next.host}", which gets no \`${method}\`. Name that address.`,
    );
  return { url: next, method, headers: kept, ...defined({ body }) };
}

async function resultOf(response: Response): Promise<JsonObject> {
  const { status, headers } = response;
  if (MAY_PASS.has(status) || status >= 500) {
    await response.body?.cancel();
    throw new ToolError(`It was answered with ${status}.`, { retriable: true });
  }
  const text = await textOf(response);
  const isJson = /[/+]json\b/i.test(headers.get("content-type") ?? "");
  const parsed = isJson ? parseJson(text) : undefined;
  const shown = [...headers].filter(([name]) => !DROPPED_HEADERS.has(name));
  // The body is a level below the result.
  const body = isJsonWithin(parsed, MAX_DEPTH - 1) ? parsed : text;
  return { status, headers: Object.fromEntries(shown), body };
}

async function textOf(response: Response): Promise<string> {
  const chunks: string[] = [];
  const decoder = new TextDecoder();
  let length = 0;
  // Leaving the loop cancels the stream.
  for await (const chunk of response.body ?? []) {
    length += chunk.byteLength;
    if (length > MAX_HTTP_RESPONSE_BYTES)
      throw new ToolError(`The response has more than ${MAX_HTTP_RESPONSE_BYTES} bytes.`);
    chunks.push(decoder.decode(chunk, { stream: true }));
  }
  return chunks.join("") + decoder.decode();
}
