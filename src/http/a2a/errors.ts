/** Problems of `/a2a` in the forms of A2A (A2A-9). */
import type { MiddlewareHandler } from "hono";
import {
  A2aError,
  a2aStatus,
  rpcError,
  rpcProblem,
  statusError,
  statusProblem,
} from "../../compat/a2a/errors.ts";
import type { HttpEnv } from "../base/context.ts";
import { HEADERS, type Problem } from "../base/problem.ts";

/** The path of JSON-RPC. All longer paths belong to REST. */
const RPC_PATH = /^\/a2a\/[^/]+$/;
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\b/i;

/** Removes the slash after the address of an agent: clients of JSON-RPC append it. */
export function withoutSlash(path: string): string {
  return path.replace(/^(\/a2a\/[^/]+)\/$/, "$1");
}

/** Translates the problem documents of all later handlers. Responses of the application's own `authorize` stay. */
export const a2aErrors: MiddlewareHandler<HttpEnv> = async (context, next) => {
  await next();
  const { res: response, req } = context;
  if (response.headers.get("content-type") !== "application/problem+json") return;
  const problem = await response.json<Problem>();
  const headers = new Headers(response.headers);
  headers.set("content-type", "application/json");
  const isRpc = req.method === "POST" && RPC_PATH.test(req.path);
  const type = req.header("content-type") ?? "";
  const wrongType = problem.code === "INVALID_JSON" && type !== "" && !JSON_TYPE.test(type);
  const typeError = new A2aError(
    "CONTENT_TYPE_NOT_SUPPORTED",
    `The body is no JSON. Its type is "${type}": send application/json.`,
  );
  const error = isRpc
    ? wrongType
      ? rpcError(typeError)
      : rpcProblem(problem)
    : wrongType
      ? statusError(typeError)
      : statusProblem(problem);
  const body = JSON.stringify(isRpc ? { jsonrpc: "2.0", id: null, error } : { error });
  context.res = undefined;
  context.res = new Response(body, { status: a2aStatus(problem.status), headers });
};

export function statusAnswer(error: A2aError): Response {
  const status = statusError(error);
  return Response.json({ error: status }, { status: status.code, headers: HEADERS });
}
