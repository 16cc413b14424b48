/** Problems of `/v1` in the shape that OpenAI's clients read (OAI-2, OAI-10). */
import type { MiddlewareHandler } from "hono";
import { mayBeRepeated, openAiError, openAiStatus } from "../../compat/openai/errors.ts";
import { DramatisError } from "../../shared/errors.ts";
import type { HttpEnv } from "../base/context.ts";
import type { Problem } from "../base/problem.ts";

/** Names the conversation of an answer, and of an error that a turn which had begun came to. */
export const CONVERSATION_HEADER = "x-dramatis-conversation";

/** Translates every problem that is answered behind it; what an application's own `authorize` answers stays as it is. */
export const openAiErrors: MiddlewareHandler<HttpEnv> = async (context, next) => {
  await next();
  const { res: response } = context;
  if (response.headers.get("content-type") !== "application/problem+json") return;
  const problem = await response.json<Problem>();
  const headers = new Headers(response.headers);
  headers.set("content-type", "application/json");
  const isRepeatable = mayBeRepeated(problem.status, headers.has(CONVERSATION_HEADER));
  if (isRepeatable !== null) headers.set("x-should-retry", String(isRepeatable));
  const body = JSON.stringify({ error: openAiError(problem) });
  context.res = undefined;
  context.res = new Response(body, { status: openAiStatus(problem.status), headers });
};

/** Pointers to the fields of the protocol by the fields of ours that were made from them. */
export type FieldNames = Readonly<Record<string, string>>;

/** The error with the names of the fields that the client knows. */
export function inFieldsOf(error: unknown, names: FieldNames): unknown {
  if (!(error instanceof DramatisError) || error.options.errors === undefined) return error;
  let told = error.message;
  const errors = error.options.errors.map(({ path: ours, message }) => {
    const [, field = ""] = ours.split("/");
    const path = names[field] ?? ours;
    told = told.replaceAll(`${ours}:`, `${path}:`);
    return { path, message };
  });
  return new DramatisError(error.code, told, { ...error.options, errors });
}

export function noSuchModel(model: string): DramatisError {
  const message = `There is no model "${model}". A model is an agent: GET /v1/models lists them.`;
  return new DramatisError("NOT_FOUND", message, { errors: [{ path: "/model", message: "No such agent." }] });
}
