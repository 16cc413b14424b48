/**
 * A call of a tool: its key, its progress and its end.
 *
 * MCP-4  The same call with the same key has the same turn or run. The key is the header `Idempotency-Key`, or `_meta`
 *        `dramatis/idempotencyKey`, or, in a session of an older revision, the session and the id of the request.
 * MCP-9  A client of revision 2026-07-28 gets a question as the result of its call, and sends the call again with the answer. A client of an
 *        older revision gets it as a request in the stream of the call, and its response may reach any isolate.
 * MCP-5  A cancelled call stops its turn or run. In revision 2026-07-28 a client cancels by leaving, unless it gave a key: then it may
 *        come back. In older revisions it sends `notifications/cancelled`.
 */
import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type InputRequiredResult,
  inputRequired,
  type McpServer,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { type GivenAnswer, givenAnswer, type Question, questionKey } from "../../compat/mcp/questions.ts";
import { TASKS } from "../../compat/mcp/tasks.ts";
import { failure } from "../../compat/mcp/tools.ts";
import type { PinnedWorkflow } from "../../protocol/pinned-workflow.ts";
import { MAX_KEY_LENGTH } from "../../protocol/requests.ts";
import { DramatisError, type Result, toErrorData, unwrap } from "../../shared/errors.ts";
import { invalidAt } from "../../shared/validation.ts";
import type { RequestVariables } from "../base/context.ts";

export const SESSION_HEADER = "mcp-session-id";
/** Begins the session of a client that has forms. */
export const WITH_FORMS = "forms-";
const KEY = "dramatis/idempotencyKey";

export interface McpRequest {
  ports: RequestVariables;
  headers: Headers;
  /** Pins a tool of the tenant for a run. */
  pinTool(reference: string): Promise<PinnedWorkflow>;
  /** Keeps the Worker alive for work after the end of the response. */
  waitUntil(work: Promise<unknown>): void;
}

export interface ToolCall extends McpRequest {
  key: string | undefined;
  /** Aborts when the client has left. */
  signal: AbortSignal;
  /** Tells the client about progress, if it asked for it. */
  progress(message: string): Promise<void>;
  /** Sets the way to stop the work. */
  onCancel(cancel: Cancel): void;
  /** The client takes a task instead of the result. */
  takesTasks: boolean;
  /** The answers to earlier questions of this call. */
  answers: readonly GivenAnswer[];
  /**
   * Asks the person at the client. Returns the result that ends the call; `undefined` if the answer comes while the call goes on. `null` if
   * the client has no form for a question.
   */
  ask(questions: readonly Question[]): Promise<InputRequiredResult | undefined | null>;
}

export type CallResult = CallToolResult | InputRequiredResult;

/** Stops work. Holds nothing of the request that began it: another request may call it. */
type Cancel = (ports: RequestVariables) => Promise<Result<unknown>>;

/** The calls of sessions that this isolate works on, by principal and key. A notification may reach another isolate: it then has no effect. */
const running = new Map<string, Cancel>();

/** Runs a call. Returns errors as results (MCP-2). */
export async function toolResult(
  request: McpRequest,
  server: McpServer,
  { mcpReq }: ServerContext,
  run: (call: ToolCall) => Promise<CallResult>,
): Promise<CallResult> {
  const { _meta: meta, id, signal, envelope, inputResponses = {} } = mcpReq;
  const { ports, headers } = request;
  const token = meta?.progressToken;
  const session = envelope === undefined ? sessionKey(headers, id) : undefined;
  const place = placeOf(request, id);
  let cancel: Cancel | undefined;
  let progress = 0;
  const work = async () => {
    const given = headers.get("idempotency-key") ?? meta?.[KEY];
    const result = await run({
      ...request,
      key: given === undefined ? session : checkedKey(given),
      signal,
      takesTasks: hasTasks(capabilitiesOf(envelope)),
      progress: async (message) => {
        if (token === undefined || message === "" || signal.aborted) return;
        progress += 1;
        const params = { progressToken: token, progress, message };
        await mcpReq.notify({ method: "notifications/progress", params });
      },
      onCancel: (stop) => {
        cancel = stop;
        if (session !== undefined) running.set(place, stop);
      },
      answers: Object.entries(inputResponses).flatMap(([key, value]) => givenAnswer(key, value) ?? []),
      ask: async (questions) => {
        const forms = questions.flatMap(({ place, form }) =>
          form ? [[questionKey(place), form] as const] : [],
        );
        if (!hasForms(headers, envelope) || forms.length < questions.length) return null;
        if (envelope !== undefined) {
          const requests = forms.map(([key, form]) => [key, inputRequired.elicit(form)]);
          return inputRequired({ inputRequests: Object.fromEntries(requests) });
        }
        for (const [key, params] of forms) {
          const message = { jsonrpc: "2.0", id: key, method: "elicitation/create", params } as const;
          await server.server.transport?.send(message, { relatedRequestId: id });
        }
        return undefined;
      },
    });
    const hasLeft = signal.aborted && envelope !== undefined && given === undefined;
    if (hasLeft && cancel !== undefined) await stopped(cancel, ports);
    return result;
  };
  const result = work()
    .catch((error: unknown) => {
      if (!(error instanceof DramatisError)) console.error(error);
      return failure(toErrorData(error));
    })
    .finally(() => running.delete(place));
  request.waitUntil(result);
  return result;
}

/** Reports whether the client has forms: since revision 2026-07-28 each request names them, before that the beginning of a session. */
function hasForms(headers: Headers, envelope: object | undefined): boolean {
  if (envelope === undefined) return headers.get(SESSION_HEADER)?.startsWith(WITH_FORMS) === true;
  return canElicit(capabilitiesOf(envelope));
}

/** Returns the capabilities that a client of revision 2026-07-28 sent with its request. */
export function capabilitiesOf(envelope: object | undefined): unknown {
  return Object(envelope)[CLIENT_CAPABILITIES_META_KEY];
}

export function hasTasks(capabilities: unknown): boolean {
  return Object(Object(capabilities).extensions)[TASKS] !== undefined;
}

/** Reports whether capabilities of a client have forms. Only those of older revisions have no modes. */
export function canElicit(capabilities: unknown): boolean {
  const { elicitation } = Object(capabilities);
  if (elicitation === undefined) return false;
  const { form, url } = Object(elicitation);
  return form !== undefined || url === undefined;
}

/** Stops the call that a notification of an older revision names. */
export async function cancelCall(request: McpRequest, requestId: string | number): Promise<void> {
  const cancel = running.get(placeOf(request, requestId));
  if (cancel !== undefined) await stopped(cancel, request.ports);
}

/** Stops work, unless it is over. */
async function stopped(cancel: Cancel, ports: RequestVariables): Promise<void> {
  const result = await cancel(ports);
  if (!result.ok && result.error.code !== "CONFLICT") unwrap(result);
}

function placeOf({ ports, headers }: McpRequest, requestId: string | number): string {
  const { tenant, subject } = ports.principal;
  return JSON.stringify([tenant, subject, headers.get(SESSION_HEADER), requestId]);
}

/** Returns the key of a request in a session; `undefined` without a session. */
function sessionKey(headers: Headers, requestId: string | number): string | undefined {
  const session = headers.get(SESSION_HEADER);
  return session === null ? undefined : checkedKey(JSON.stringify([session, requestId]));
}

function checkedKey(key: unknown): string {
  if (typeof key === "string" && key !== "" && key.length <= MAX_KEY_LENGTH && key.isWellFormed()) return key;
  const rule = `The idempotency key must be a text of 1 to ${MAX_KEY_LENGTH} characters.`;
  throw invalidAt(`/_meta/${KEY}`, rule);
}
