/**
 * The methods of A2A, for both bindings.
 *
 * A2A-8  Leaving a stream, or a request that waits, stops no turn: `CancelTask` stops it, and `SubscribeToTask` reads it again from its
 *        beginning. When the client of a request that waits has left, the server stops reading.
 */
import { TaskEncoder } from "../../compat/a2a/encoder.ts";
import { A2aError } from "../../compat/a2a/errors.ts";
import type { SentConfig } from "../../compat/a2a/push.ts";
import {
  answersOfMessage,
  listParams,
  type SentMessage,
  sendParams,
  taskParams,
  turnOfMessage,
} from "../../compat/a2a/requests.ts";
import type { MethodCall } from "../../compat/a2a/rest.ts";
import { shownTask, type TurnPlace, taskAtStart } from "../../compat/a2a/tasks.ts";
import type { A2aTask, StreamEvent } from "../../compat/a2a/wire.ts";
import { A2A_VERSION } from "../../protocol/remote-call.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import { isConversationId } from "../../shared/identifiers.ts";
import { shorten } from "../../shared/text.ts";
import { validate } from "../../shared/validation.ts";
import { findConversation } from "../routes/conversations.ts";
import { type ReadOptions, turnFrames } from "../routes/turn-frames.ts";
import { startTurn, threadOf } from "../threads.ts";
import { addConfig, checkConfig, PUSH_METHODS } from "./push.ts";
import { type A2aCall, ifFound, listTasks, placeOf, taskAt } from "./tasks.ts";

export type MethodResult =
  | { result: object }
  | { later(signal: AbortSignal): Promise<object> }
  | { events(signal: AbortSignal): AsyncGenerator<StreamEvent, void> };

/** A turn, and the way to read its frames. */
interface Sent extends ReadOptions {
  place: TurnPlace;
}

type Method = (call: A2aCall, params: unknown) => Promise<MethodResult>;

const METHODS: Readonly<Record<string, Method>> = {
  async SendMessage(call, params) {
    const { message, configuration = {} } = validate(sendParams, params);
    const sent = await send(call, message, configuration);
    const result = async () => ({ task: shownTask((await taskAt(call, sent.place)).task, configuration) });
    if (configuration.returnImmediately === true) return { result: await result() };
    return {
      later: async (signal) => {
        for await (const _ of follow(call, sent, { untilWaiting: true, signal }));
        return signal.aborted ? {} : result();
      },
    };
  },
  async SendStreamingMessage(call, params) {
    const { message, configuration = {} } = validate(sendParams, params);
    const sent = await send(call, message, configuration);
    return { events: (signal) => follow(call, sent, { signal }) };
  },
  async GetTask(call, params) {
    const { id, historyLength } = validate(taskParams, params);
    const { task } = await taskAt(call, placeOf(id));
    return { result: shownTask(task, { historyLength }) };
  },
  async ListTasks(call, params) {
    return { result: await listTasks(call, validate(listParams, params)) };
  },
  async CancelTask(call, params) {
    return { result: await cancel(call, placeOf(validate(taskParams, params).id)) };
  },
  async SubscribeToTask(call, params) {
    const place = placeOf(validate(taskParams, params).id);
    const { turn } = await taskAt(call, place);
    if (turn.status !== "active")
      throw new A2aError("UNSUPPORTED_OPERATION", "The task is over. Read it with GetTask.");
    return { events: (signal) => follow(call, { place }, { signal, isToEnd: true }) };
  },
  ...PUSH_METHODS,
  async GetExtendedAgentCard(call) {
    return { result: await call.card() };
  },
};

/** The number of a patch does not count. */
const ACCEPTED_VERSION = /^1\.0(?:\.[0-9]+)?$/;

/** Runs a method. Throws `A2aError`, and `DramatisError`. */
export function runMethod(call: A2aCall, { method, params }: MethodCall): Promise<MethodResult> {
  const { version } = call;
  if (version !== undefined && !ACCEPTED_VERSION.test(version))
    throw new A2aError("VERSION_NOT_SUPPORTED", `Version "${version}" is not supported. Use ${A2A_VERSION}.`);
  const run = Object.hasOwn(METHODS, method) ? METHODS[method] : undefined;
  if (run !== undefined) return run(call, params);
  const known = Object.keys(METHODS).join(", ");
  throw new A2aError(
    "METHOD_NOT_FOUND",
    `The server has no method ${JSON.stringify(shorten(method, 100))}. Of A2A ${A2A_VERSION} it has ${known}.`,
  );
}

/** The id of the configuration that came with a message. */
const SENT_CONFIG = "message";

/** Sends a message, and adds its configuration of push notifications to its task. */
async function send(
  call: A2aCall,
  message: SentMessage,
  { taskPushNotificationConfig: config }: { taskPushNotificationConfig?: SentConfig | undefined },
): Promise<Sent> {
  if (config !== undefined) checkConfig(call, config, "/configuration/taskPushNotificationConfig");
  const sent = await begin(call, message);
  if (config !== undefined) await addConfig(call, sent.place, config, SENT_CONFIG);
  return sent;
}

/** Starts the turn of a message, or gives its answers to its task (A2A-6). */
async function begin(call: A2aCall, message: SentMessage): Promise<Sent> {
  const { ports, agentId, traceparent } = call;
  const { messageId, contextId = "", taskId = "" } = message;
  if (taskId !== "") return { place: await answer(call, message, placeOf(taskId)) };
  if (contextId !== "" && !isConversationId(contextId)) throw noContext(contextId);
  const name = contextId === "" ? `message ${messageId}` : contextId;
  const path = "/message/contextId";
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
    throw new A2aError("INVALID_PARAMS", "The task belongs to another context.");
  const conversation = await findConversation(ports, place.conversationId);
  const key = `${place.turnId} ${message.messageId}`;
  const known = unwrap(await conversation.answeredWith(ports.principal, key));
  if (known.length === 0 && turn.status !== "active")
    throw new A2aError("UNSUPPORTED_OPERATION", "The task is over. Send its contextId without its taskId.");
  if (known.length + questions.length === 0)
    throw new A2aError("UNSUPPORTED_OPERATION", "The task needs no answer of yours.");
  const open = questions.map((question) => question.place);
  const asked = known.length === 0 ? open : known.map((operationId) => ({ ...place, operationId }));
  const approvals = answersOfMessage(message, asked).map((given) => {
    // A repeated approval succeeds, also if the call has asked its next question.
    const isRepeated = known.length > 0 && given.approved && given.round !== undefined;
    return { ...given, ...(isRepeated && { mayBeOver: true as const }) };
  });
  unwrap(await conversation.answerCalls(ports.principal, { approvals, key }));
  return place;
}

async function cancel(call: A2aCall, place: TurnPlace): Promise<A2aTask> {
  await taskAt(call, place);
  const conversation = await findConversation(call.ports, place.conversationId);
  const cancelled = await conversation.cancelTurn(call.ports.principal, place.turnId);
  if (!cancelled.ok && cancelled.error.code === "CONFLICT")
    throw new A2aError("TASK_NOT_CANCELABLE", "The task is over.");
  unwrap(cancelled);
  return shownTask((await taskAt(call, place)).task, {});
}

/**
 * Yields the events of a task. `untilWaiting` also ends them as soon as the turn waits for others. `isToEnd` does not end them when the
 * task needs input.
 */
async function* follow(
  call: A2aCall,
  { place, ...start }: Sent,
  {
    signal,
    untilWaiting = false,
    isToEnd,
  }: { signal: AbortSignal; untilWaiting?: boolean; isToEnd?: boolean },
): AsyncGenerator<StreamEvent, void> {
  const { principal } = call.ports;
  const encoder = new TaskEncoder(place, principal, isToEnd);
  if (!untilWaiting) {
    const { task, turn } = await taskAt(call, place);
    yield { task: taskAtStart(task, turn.createdAt) };
  }
  const conversation = () => findConversation(call.ports, place.conversationId);
  const source = { conversation, principal, turnId: place.turnId };
  for await (const frame of turnFrames(source, { ...start, signal })) {
    yield* encoder.push(frame);
    if (encoder.mayWait(frame)) {
      const { turn, questions, task } = await taskAt(call, place);
      yield* encoder.ask(questions, task.status.timestamp);
      if (untilWaiting && turn.phase === "waiting") return;
    }
    if (encoder.isOver) return;
  }
}

const noContext = (id: string) =>
  new A2aError("INVALID_PARAMS", `There is no context "${id}". Send no contextId to begin a context.`);
