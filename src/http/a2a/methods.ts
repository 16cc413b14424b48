/**
 * The methods of A2A.
 *
 * A2A-7  A task of another agent, or of a conversation that the principal may not read, is not found.
 * A2A-8  Leaving a stream stops no turn: `CancelTask` stops it, and `SubscribeToTask` reads it again from its beginning.
 */
import { TaskEncoder } from "../../compat/a2a/encoder.ts";
import {
  answersOfMessage,
  type RpcRequest,
  type SentMessage,
  sendParams,
  taskParams,
  turnOfMessage,
} from "../../compat/a2a/requests.ts";
import { type TurnPlace, taskAtStart, taskOf } from "../../compat/a2a/tasks.ts";
import {
  A2A_VERSION,
  type A2aTask,
  RPC_ERRORS,
  type RpcError,
  type StreamEvent,
} from "../../compat/a2a/wire.ts";
import { type Question, questionsOfTurn } from "../../compat/mcp/questions.ts";
import { parseTaskId } from "../../compat/mcp/tasks.ts";
import type { TurnView } from "../../protocol/conversation-schemas.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, type ErrorCode, toErrorData, unwrap } from "../../shared/errors.ts";
import { isConversationId } from "../../shared/identifiers.ts";
import { shorten } from "../../shared/text.ts";
import { validate } from "../../shared/validation.ts";
import type { HttpEnv } from "../base/context.ts";
import { findConversation } from "../routes/conversations.ts";
import { type ReadOptions, turnFrames } from "../routes/turn-frames.ts";
import { startTurn, threadOf } from "../threads.ts";

/** A request to an agent. */
export interface A2aCall {
  ports: HttpEnv["Variables"];
  agentId: string;
  /** The header `A2A-Version`. */
  version: string | undefined;
  traceparent: string | undefined;
}

type Head = { jsonrpc: "2.0"; id: string | number | null };
type Answer = Head & ({ result: object } | { error: RpcError });
type Payloads = (signal: AbortSignal) => AsyncGenerator<{ data: string }, void>;
type Result = { result: object } | { events(signal: AbortSignal): AsyncGenerator<StreamEvent, void> };

/** A turn, and the way to read its frames. */
interface Sent extends ReadOptions {
  place: TurnPlace;
}

type RpcCode = keyof typeof RPC_ERRORS;

/** An error of the protocol. */
class MethodError extends Error {
  constructor(
    readonly code: RpcCode,
    message: string,
  ) {
    super(message);
  }
}

/** The errors that clients get as errors of the protocol. All other errors are problem documents. */
const CODES: Partial<Record<ErrorCode, RpcCode>> = {
  INVALID_INPUT: "INVALID_PARAMS",
  CONFLICT: "INVALID_PARAMS",
  IDEMPOTENCY_CONFLICT: "INVALID_PARAMS",
  UNSUPPORTED: "UNSUPPORTED_OPERATION",
  CONVERSATION_CLOSED: "UNSUPPORTED_OPERATION",
};

/** Answers a request, or returns the events of its answer. */
export async function answerRpc(call: A2aCall, request: RpcRequest): Promise<Answer | Payloads> {
  const head: Head = { jsonrpc: "2.0", id: request.id ?? null };
  try {
    const answer = await run(call, request);
    if ("result" in answer) return { ...head, ...answer };
    return (signal) => payloads(head, answer.events(signal));
  } catch (error) {
    return { ...head, error: rpcError(error) };
  }
}

async function run(call: A2aCall, { method, params = {} }: RpcRequest): Promise<Result> {
  const { version } = call;
  if (version !== undefined && version !== A2A_VERSION)
    throw new MethodError(
      "VERSION_NOT_SUPPORTED",
      `Version "${version}" is not supported. Use ${A2A_VERSION}.`,
    );
  switch (method) {
    case "SendMessage": {
      const { message, configuration = {} } = validate(sendParams, params, "/params");
      const sent = await send(call, message);
      if (configuration.returnImmediately !== true)
        for await (const _ of follow(call, sent, { untilWaiting: true }));
      return { result: { task: (await taskAt(call, sent.place, configuration.historyLength)).task } };
    }
    case "SendStreamingMessage": {
      const sent = await send(call, validate(sendParams, params, "/params").message);
      return { events: (signal) => follow(call, sent, { signal }) };
    }
    case "GetTask": {
      const { id, historyLength } = validate(taskParams, params, "/params");
      return { result: (await taskAt(call, placeOf(id), historyLength)).task };
    }
    case "CancelTask":
      return { result: await cancel(call, placeOf(validate(taskParams, params, "/params").id)) };
    case "SubscribeToTask": {
      const place = placeOf(validate(taskParams, params, "/params").id);
      const { turn } = await taskAt(call, place);
      if (turn.status !== "active")
        throw new MethodError("UNSUPPORTED_OPERATION", "The task is over. Read it with GetTask.");
      return { events: (signal) => follow(call, { place }, { signal }) };
    }
    default:
      if (method.includes("PushNotification"))
        throw new MethodError("PUSH_NOTIFICATION_NOT_SUPPORTED", "The server sends no push notifications.");
      throw new MethodError(
        "METHOD_NOT_FOUND",
        `The server has no method ${JSON.stringify(shorten(method, 100))}. Of A2A 1.0 it has SendMessage, SendStreamingMessage, GetTask, CancelTask and SubscribeToTask.`,
      );
  }
}

/** Starts the turn of a message, or gives its answers to its task (A2A-6). */
async function send(call: A2aCall, message: SentMessage): Promise<Sent> {
  const { ports, agentId, traceparent } = call;
  const { messageId, contextId = "", taskId = "" } = message;
  if (taskId !== "") return { place: await answer(call, message, placeOf(taskId)) };
  if (contextId !== "" && !isConversationId(contextId)) throw noContext(contextId);
  const name = contextId === "" ? `message ${messageId}` : contextId;
  const path = "/params/message/contextId";
  const thread = await ifFound(threadOf(ports, agentId, { protocol: "a2a", name, path }), () =>
    contextId === "" ? undefined : noContext(contextId),
  );
  const { conversationId } = thread;
  const input = { ...turnOfMessage(message), ...defined({ traceparent }) };
  const { turnId, from, frames } = await startTurn(ports, thread, input);
  return { place: { conversationId, turnId }, from, opened: frames };
}

async function answer(call: A2aCall, message: SentMessage, place: TurnPlace): Promise<TurnPlace> {
  const { ports } = call;
  const { turn, questions } = await taskAt(call, place);
  if (message.contextId !== undefined && message.contextId !== place.conversationId)
    throw new MethodError("INVALID_PARAMS", "The task belongs to another context.");
  const conversation = await findConversation(ports, place.conversationId);
  const key = `${place.turnId} ${message.messageId}`;
  const known = unwrap(await conversation.answeredWith(ports.principal, key));
  if (known.length === 0 && turn.status !== "active")
    throw new MethodError(
      "UNSUPPORTED_OPERATION",
      "The task is over. Send its contextId without its taskId.",
    );
  if (known.length + questions.length === 0)
    throw new MethodError("UNSUPPORTED_OPERATION", "The task needs no answer of yours.");
  const open = questions.map((question) => question.place);
  const asked = known.length === 0 ? open : known.map((operationId) => ({ ...place, operationId }));
  const approvals = answersOfMessage(message, asked);
  unwrap(await conversation.answerCalls(ports.principal, { approvals, key }));
  return place;
}

async function cancel(call: A2aCall, place: TurnPlace): Promise<A2aTask> {
  await taskAt(call, place);
  const conversation = await findConversation(call.ports, place.conversationId);
  const cancelled = await conversation.cancelTurn(call.ports.principal, place.turnId);
  if (!cancelled.ok && cancelled.error.code === "CONFLICT")
    throw new MethodError("TASK_NOT_CANCELABLE", "The task is over.");
  unwrap(cancelled);
  return (await taskAt(call, place)).task;
}

/** Yields the events of a task. `untilWaiting` also ends them as soon as the turn waits for others. */
async function* follow(
  call: A2aCall,
  { place, ...start }: Sent,
  { signal, untilWaiting = false }: { signal?: AbortSignal; untilWaiting?: boolean },
): AsyncGenerator<StreamEvent, void> {
  const { principal } = call.ports;
  const encoder = new TaskEncoder(place, principal);
  if (!untilWaiting) yield { task: taskAtStart((await taskAt(call, place)).task, now(call)) };
  const conversation = () => findConversation(call.ports, place.conversationId);
  const source = { conversation, principal, turnId: place.turnId };
  for await (const frame of turnFrames(source, { ...start, signal })) {
    yield* encoder.push(frame);
    if (encoder.mayWait(frame)) {
      const { turn, questions } = await taskAt(call, place);
      yield* encoder.ask(questions, now(call));
      if (untilWaiting && turn.phase === "waiting") return;
    }
    if (encoder.isOver) return;
  }
}

function placeOf(id: string): TurnPlace {
  const place = parseTaskId(id);
  if (place === undefined || "runId" in place) throw noTask();
  return place;
}

/** Reads a task (A2A-7). */
async function taskAt(
  call: A2aCall,
  place: TurnPlace,
  historyLength?: number,
): Promise<{ turn: TurnView; questions: Question[]; task: A2aTask }> {
  const { ports, agentId } = call;
  const { principal } = ports;
  const read = async () =>
    unwrap(await (await findConversation(ports, place.conversationId)).turn(principal, place.turnId));
  const turn = await ifFound(read(), noTask);
  if (turn.agentId !== agentId) throw noTask();
  const questions = questionsOfTurn(place, turn, principal);
  const task = taskOf(place, turn, questions, now(call));
  return { turn, questions, task: historyLength === 0 ? { ...task, history: [] } : task };
}

function now({ ports }: A2aCall): string {
  return new Date(ports.clock.now()).toISOString();
}

/** Replaces the error of a missing actor. */
async function ifFound<Value>(found: Promise<Value>, missing: () => Error | undefined): Promise<Value> {
  try {
    return await found;
  } catch (error) {
    const isMissing = error instanceof DramatisError && error.code === "NOT_FOUND";
    throw (isMissing ? missing() : undefined) ?? error;
  }
}

const noTask = () =>
  new MethodError("TASK_NOT_FOUND", "The task was not found. Check its id and your access.");

const noContext = (id: string) =>
  new MethodError("INVALID_PARAMS", `There is no context "${id}". Send no contextId to begin a context.`);

async function* payloads(
  head: Head,
  events: AsyncIterable<StreamEvent>,
): AsyncGenerator<{ data: string }, void> {
  const payload = (answer: Answer) => ({ data: JSON.stringify(answer) });
  try {
    for await (const result of events) yield payload({ ...head, result });
  } catch (error) {
    if (!(error instanceof DramatisError || error instanceof MethodError)) console.error(error);
    const { code, message } = toErrorData(error);
    yield payload({ ...head, error: errorOf("INTERNAL_ERROR", message, code) });
  }
}

/** Returns an error as an error of the protocol. Throws the errors that it has no code for. */
function rpcError(error: unknown): RpcError {
  if (error instanceof MethodError) return errorOf(error.code, error.message, error.code);
  const code = error instanceof DramatisError ? CODES[error.code] : undefined;
  if (code === undefined) throw error;
  const { message, code: reason } = toErrorData(error);
  return errorOf(code, message, reason);
}

function errorOf(code: RpcCode, message: string, reason: string): RpcError {
  const info = { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain: "a2a-protocol.org" };
  return { code: RPC_ERRORS[code], message, data: [info] };
}
