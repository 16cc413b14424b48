/**
 * The action `http.request`.
 *
 * HTTP-1  Every address, including each redirect, is checked against the action's hosts before the request. A refusal has the rule `network`.
 *         A redirect to another origin keeps only the headers that describe the wanted response. A request with a body never follows such a redirect.
 * HTTP-2  A response has at most `MAX_HTTP_RESPONSE_BYTES`. Reading stops with an error at the limit.
 * HTTP-4  A request of an `idempotent` action carries the idempotency key of its step, the same in all attempts, unless its input gives a
 *         key.
 * HTTP-3  No answer, 408, 429 and 5xx are transient errors. Any other status is a result. Its body is text unless it is JSON within the
 *         limits of a result.
 * HTTP-5  A request that HTTP cannot express is refused without a retry.
 * HTTP-7  Each request, also after a redirect, carries the secrets of the project for its address. The result has none of them.
 */
import { z } from "zod";
import { checkResolved, type ResolveHost } from "../../../library/tasks/resolver.ts";
import { MAX_HTTP_REDIRECTS, MAX_HTTP_RESPONSE_BYTES } from "../../../library/tasks/task-limits.ts";
import { ToolError } from "../../../library/tools/tool-error.ts";
import type { HttpRequestAction } from "../../../protocol/task-definition.ts";
import { bytesOf } from "../../../shared/byte-buffer.ts";
import { defined } from "../../../shared/defined.ts";
import { addressProblem } from "../../../shared/host-rules.ts";
import { isJsonWithin, type Json, type JsonObject, MAX_DEPTH, parseJson } from "../../../shared/json.ts";
import { redactSecrets, withoutValues } from "../../../shared/redact.ts";
import { inputIssues, issuesText, plainly } from "../../../shared/validation.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] as const;
/** Methods without effects and without a body. */
const READS: ReadonlySet<string> = new Set(["GET", "HEAD"]);
/** Headers without secrets of an origin. */
const PLAIN_HEADERS = new Set(["accept", "accept-language", "user-agent"]);
const DROPPED_HEADERS = new Set(["set-cookie", "set-cookie2"]);
/** Redirect statuses that change the method to `GET`, except for `HEAD`. */
const TO_GET = new Set([301, 302, 303]);
const REDIRECTS = new Set([...TO_GET, 307, 308]);
const MAY_PASS = new Set([408, 429]);

const inputSchema = z.strictObject({
  url: z.string(),
  method: z.enum(METHODS).default("GET"),
  headers: z.record(z.string(), z.string()).default({}),
  body: z.json().optional(),
});

/** Sends a request, without following redirects. Throws `ToolError` for a request that must not be repeated. */
export type SendHttp = (
  url: URL,
  request: { method: string; headers: Headers; signal: AbortSignal; redirect: "manual"; body?: string },
) => Promise<Response>;

/** A header with a secret. `secret` is the part of its value that must not be shown. */
interface Credential {
  header: string;
  value: string;
  secret: string;
}

/** Returns the headers with secrets for an address. */
export type CredentialsFor = (url: URL) => Promise<readonly Credential[]>;

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
  {
    send = fetch,
    resolve,
    credentials = async () => [],
    signal,
    idempotencyKey,
  }: {
    send?: SendHttp;
    resolve?: ResolveHost;
    credentials?: CredentialsFor;
    signal: AbortSignal;
    idempotencyKey: string;
  },
): Promise<JsonObject> {
  let sent = requestOf(input);
  if (effect === "idempotent" && !sent.headers.has("idempotency-key"))
    carried(
      "Its idempotency key has characters that HTTP does not allow. Use ASCII letters, digits and punctuation.",
      () => sent.headers.set("idempotency-key", idempotencyKey),
    );
  const secrets: string[] = [];
  const answered = async () => {
    for (let redirects = 0; ; redirects++) {
      const problem = addressProblem(sent.url, hosts);
      if (problem !== null) throw new ToolError(problem, { code: "PERMISSION_DENIED", rule: "network" });
      await checkResolved(sent.url.hostname, resolve, signal);
      const headers = new Headers(sent.headers);
      for (const { header, value, secret } of await credentials(sent.url)) {
        headers.set(header, value);
        // The host of a URL is in lowercase.
        secrets.push(secret, secret.toLowerCase());
      }
      const response = await answerTo({ ...sent, headers }, send, signal);
      const next = redirectOf(sent, response);
      if (next === null) return await resultOf(response);
      await response.body?.cancel();
      if (redirects >= MAX_HTTP_REDIRECTS)
        throw new ToolError(`It was redirected more than ${MAX_HTTP_REDIRECTS} times.`);
      sent = next;
    }
  };
  try {
    return withoutValues(await answered(), secrets);
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    const { code, retriable, rule, cause } = error;
    throw new ToolError(redactSecrets(error.message, secrets), { code, retriable, rule, cause });
  }
}

function requestOf(input: Json): Sent {
  const parsed = inputSchema.safeParse(input, { error: plainly });
  if (!parsed.success)
    throw new ToolError(`Its input is not valid: ${issuesText(inputIssues(parsed.error))}`, {
      code: "INVALID_INPUT",
    });
  const { url: address, method, headers: given, body } = parsed.data;
  const url = URL.parse(address);
  if (url === null) throw new ToolError("Its `url` is not a valid address.", { code: "INVALID_INPUT" });
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

/** Returns the result of `make`. Throws `INVALID_INPUT` with the message if HTTP cannot express the parts. */
function carried<Made>(message: string, make: () => Made): Made {
  try {
    return make();
  } catch (cause) {
    throw new ToolError(message, { code: "INVALID_INPUT", cause });
  }
}

async function answerTo(
  { url, method, headers, body }: Sent,
  send: SendHttp,
  signal: AbortSignal,
): Promise<Response> {
  try {
    return await send(url, { method, headers, signal, redirect: "manual", ...defined({ body }) });
  } catch (cause) {
    if (signal.aborted) throw signal.reason;
    if (cause instanceof ToolError) throw cause;
    throw new ToolError(`"${url.host}" did not answer.`, { retriable: true, cause });
  }
}

function redirectOf(
  { url, method, headers, body }: Sent,
  { status, headers: answered }: Response,
): Sent | null {
  const location = answered.get("location");
  if (!REDIRECTS.has(status) || location === null) return null;
  const next = URL.parse(location, url);
  if (next === null) throw new ToolError("It was redirected to an invalid address.");
  const isElsewhere = next.origin !== url.origin;
  const kept = new Headers([...headers].filter(([name]) => !isElsewhere || PLAIN_HEADERS.has(name)));
  if (TO_GET.has(status) && !READS.has(method)) {
    kept.delete("content-type");
    return { url: next, method: "GET", headers: kept };
  }
  if (isElsewhere && !READS.has(method))
    throw new ToolError(
      `It was redirected to "${next.host}", which a \`${method}\` must not reach. Use that address as the \`url\`.`,
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
  // The body is one level below the result.
  const body = isJsonWithin(parsed, MAX_DEPTH - 1) ? parsed : text;
  return { status, headers: Object.fromEntries(shown), body };
}

async function textOf(response: Response): Promise<string> {
  const tooLong = () => new ToolError(`The response has more than ${MAX_HTTP_RESPONSE_BYTES} bytes.`);
  return new TextDecoder().decode(await bytesOf(response.body, MAX_HTTP_RESPONSE_BYTES, tooLong));
}
