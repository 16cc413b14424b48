/** The JSON-RPC binding of A2A. */
import type { Context } from "hono";
import { A2aError, protocolError, type RpcError, rpcError } from "../../compat/a2a/errors.ts";
import { jsonNames, type RpcRequest } from "../../compat/a2a/requests.ts";
import { DramatisError, toErrorData } from "../../shared/errors.ts";
import type { HttpEnv } from "../base/context.ts";
import { json, jsonLater, sse } from "../base/respond.ts";
import { callOf } from "./agent.ts";
import { runMethod } from "./methods.ts";

type Head = { jsonrpc: "2.0"; id: string | number | null };
type Answer = Head & ({ result: object } | { error: RpcError });

export async function answerRpc(context: Context<HttpEnv>, request: RpcRequest): Promise<Response> {
  const head: Head = { jsonrpc: "2.0", id: request.id ?? null };
  const { method, params = {} } = request;
  try {
    const answer = await runMethod(callOf(context), { method, params: jsonNames(params) });
    if ("result" in answer) return json({ ...head, ...answer });
    if ("events" in answer) return sse(context, (signal) => payloads(head, answer.events(signal)));
    return jsonLater(async (signal) => ({ ...head, result: await answer.later(signal) }));
  } catch (error) {
    return json({ ...head, error: rpcError(protocolError(error)) } satisfies Answer);
  }
}

async function* payloads(head: Head, events: AsyncIterable<object>): AsyncGenerator<{ data: string }, void> {
  const payload = (answer: Answer) => ({ data: JSON.stringify(answer) });
  try {
    for await (const result of events) yield payload({ ...head, result });
  } catch (error) {
    yield payload({ ...head, error: rpcError(brokenStream(error)) });
  }
}

export function brokenStream(error: unknown): A2aError {
  if (error instanceof A2aError) return error;
  if (!(error instanceof DramatisError)) console.error(error);
  const { code, message } = toErrorData(error);
  return new A2aError("INTERNAL_ERROR", message, [], code);
}
