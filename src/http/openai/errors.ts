/** Problems of `/v1` in the form of the OpenAI API (OAI-2, OAI-10). */
import type { MiddlewareHandler } from "hono";
import { mayRetry, openAiError, openAiStatus } from "../../compat/openai/errors.ts";
import { DramatisError, notFound } from "../../shared/errors.ts";
import type { HttpEnv } from "../base/context.ts";
import type { Problem } from "../base/problem.ts";

/** The conversation of an answer, or of an error after the turn began. */
export const CONVERSATION_HEADER = "x-dramatis-conversation";

/** Translates the problem documents of all later handlers. Responses of the application's own `authorize` stay. */
export const openAiErrors: MiddlewareHandler<HttpEnv> = async (context, next) => {
  await next();
  const { res: response } = context;
  if (response.headers.get("content-type") !== "application/problem+json") return;
  const problem = await response.json<Problem>();
  const headers = new Headers(response.headers);
  headers.set("content-type", "application/json");
  const retry = mayRetry(problem.status, headers.has(CONVERSATION_HEADER));
  if (retry !== null) headers.set("x-should-retry", String(retry));
  const body = JSON.stringify({ error: openAiError(problem) });
  context.res = undefined;
  context.res = new Response(body, { status: openAiStatus(problem.status), headers });
};

/** Returns the error with pointers to the fields that the client sent, given by the names of our fields. */
export function withPointers(error: unknown, pointers: Readonly<Record<string, string>>): unknown {
  if (!(error instanceof DramatisError) || error.options.errors === undefined) return error;
  let detail = error.message;
  const errors = error.options.errors.map(({ path: ours, message }) => {
    const [, field = ""] = ours.split("/");
    const path = pointers[field] ?? ours;
    detail = detail.replaceAll(`${ours}:`, `${path}:`);
    return { path, message };
  });
  return new DramatisError(error.code, detail, { ...error.options, errors });
}

export function noSuchModel(model: string): DramatisError {
  const message = `There is no model "${model}". A model is an agent: GET /v1/models lists them.`;
  return notFound(message, { errors: [{ path: "/model", message: "No such agent." }] });
}
