/** The JSON-RPC binding of A2A. */
import { A2aError, protocolError, type RpcError, rpcError } from "../../compat/a2a/errors.ts";
import type { RpcRequest } from "../../compat/a2a/requests.ts";
import { DramatisError, toErrorData } from "../../shared/errors.ts";
import { runMethod } from "./methods.ts";
import type { A2aCall } from "./tasks.ts";

type Head = { jsonrpc: "2.0"; id: string | number | null };
type Answer = Head & ({ result: object } | { error: RpcError });
type Payloads = (signal: AbortSignal) => AsyncGenerator<{ data: string }, void>;

/** Answers a request, or returns the events of its answer. */
export async function answerRpc(call: A2aCall, request: RpcRequest): Promise<Answer | Payloads> {
  const head: Head = { jsonrpc: "2.0", id: request.id ?? null };
  const { method, params = {} } = request;
  try {
    const answer = await runMethod(call, { method, params });
    if ("result" in answer) return { ...head, ...answer };
    return (signal) => payloads(head, answer.events(signal));
  } catch (error) {
    return { ...head, error: rpcError(protocolError(error)) };
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

/** Returns the error of a stream that broke. */
export function brokenStream(error: unknown): A2aError {
  if (error instanceof A2aError) return error;
  if (!(error instanceof DramatisError)) console.error(error);
  const { code, message } = toErrorData(error);
  return new A2aError("INTERNAL_ERROR", message, [], code);
}
