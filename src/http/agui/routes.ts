/**
 * `POST /agui/:id`: an agent for clients of AG-UI.
 *
 * AGUI-7  The thread of a user with an agent is one conversation, and the id of a run is the key of its turn: the same run again has the same
 *         events.
 * AGUI-8  Leaving the stream of a run stops its turn, unless the run asks to keep running. Leaving a run that only reads stops no turn.
 */
import { z } from "zod";
import { type HeldRun, RunEncoder, type RunOptions } from "../../compat/agui/encoder.ts";
import { type AgUiEvent, type AgUiMessage, interrupted } from "../../compat/agui/events.ts";
import {
  gateInterrupts,
  keepsRunning,
  type RunInput,
  runRequest,
  runSchema,
  snapshotMessage,
} from "../../compat/agui/request.ts";
import { TURN_HEADER } from "../../protocol/frames.ts";
import { ids } from "../../protocol/scalars.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, toErrorData } from "../../shared/errors.ts";
import { type RequestVariables, waitUntilOf } from "../base/context.ts";
import { sse } from "../base/respond.ts";
import { CONVERSATION_HEADER } from "../openai/errors.ts";
import { type Route, route } from "../openapi/route.ts";
import { findConversation } from "../routes/conversations.ts";
import { type ReadOptions, turnFrames } from "../routes/turn-frames.ts";
import { startTurn, threadOf } from "../threads.ts";
import { answerTurn, readThread } from "./thread.ts";

const event = z.looseObject({ type: z.string() }).meta({
  id: "AgUiEvent",
  description: "An event of AG-UI 1.0. The last event of a run is `RUN_FINISHED` or `RUN_ERROR`.",
});

interface Run extends ReadOptions {
  conversationId: string;
  turnId?: string | undefined;
  /** The messages of the thread, for a run that only reads. */
  messages?: AgUiMessage[];
  answered?: readonly string[];
  /** The operations that the answers of the run changed. */
  changed?: readonly string[];
  /** The workflows that ask further questions at once. The turn has no frames of them. */
  held?: HeldRun[];
}

export const aguiRoutes: readonly Route[] = [
  route({
    id: "runAgent",
    method: "post",
    path: "/agui/:id",
    tag: "agui",
    summary: "Run an agent with AG-UI",
    description:
      "Takes the requests of `HttpAgent` of AG-UI 1.0. The newest message of the user starts a turn, `resume` and the results of tools continue it. Without them the answer has the messages of the thread, and then its active turn.",
    params: z.object({ id: ids.agent }),
    body: runSchema,
    answers: [{ status: 200, description: "The run.", type: "text/event-stream", body: event }],
    errors: [
      "UNSUPPORTED",
      "FORBIDDEN",
      "PERMISSION_DENIED",
      "CONFLICT",
      "IDEMPOTENCY_CONFLICT",
      "TOO_MANY_TURNS",
    ],
    handle: async ({ params, body }, ports, context) => {
      const run = await begin(ports, params.id, body, context.req.header("traceparent"));
      const { conversationId, turnId } = run;
      const keep = waitUntilOf(context);
      const stop = async () => {
        if (turnId === undefined) return;
        const conversation = await findConversation(ports, conversationId);
        // The result is a conflict if the turn is over.
        await conversation.cancelTurn(ports.principal, turnId);
      };
      // A run that only reads, or whose answers had no effect, leaves the turn to the run that began it.
      const mayStop = run.messages === undefined && run.changed?.length !== 0 && !keepsRunning(body);
      return sse(
        context,
        (signal) => events(ports, body, run, signal, () => mayStop && keep(stop().catch(console.error))),
        {
          [CONVERSATION_HEADER]: conversationId,
          ...(turnId === undefined ? {} : { [TURN_HEADER]: turnId }),
        },
      );
    },
  }),
];

/** Starts or continues the turn of a run, or reads its thread (AGUI-5). */
async function begin(
  ports: RequestVariables,
  agentId: string,
  body: RunInput,
  traceparent: string | undefined,
): Promise<Run> {
  const request = runRequest(body);
  const thread = await threadOf(ports, agentId, { protocol: "agui", name: body.threadId, path: "/threadId" });
  const { conversationId } = thread;
  switch (request.type) {
    case "turn": {
      const { turnId, from, frames } = await startTurn(ports, thread, {
        ...request.turn,
        ...defined({ traceparent }),
      });
      return { conversationId, turnId, from, opened: frames };
    }
    case "answers":
      return { conversationId, ...(await answerTurn(ports, thread, request)) };
    case "read":
      return { conversationId, ...(await readThread(ports, thread, snapshotMessage)) };
    default:
      return request satisfies never;
  }
}

async function* events(
  { principal, actors }: RequestVariables,
  { threadId, runId, protocolVersion }: RunInput,
  { conversationId, turnId, messages, answered, held, ...start }: Run,
  signal: AbortSignal,
  onLeave: () => void,
): AsyncGenerator<{ data: string }, void> {
  const options: RunOptions = { threadId, runId, conversationId, principal, ...defined({ answered }) };
  const isOlder = protocolVersion == null;
  const encoder = new RunEncoder({ ...options, isOlder, withClientResults: messages !== undefined });
  signal.addEventListener("abort", () => encoder.isOver || onLeave(), { once: true });
  const payload = (event: AgUiEvent) => ({ data: JSON.stringify(event) });
  const gatesOf = async (held: readonly HeldRun[]) => {
    const interrupts = held.map(async (call) => {
      const run = await (await actors.coordinator(principal.tenant, call.runId)).status(principal);
      // A run that its reader may not read has no questions for the reader.
      return run.ok ? gateInterrupts(conversationId, call, run.value, principal) : [];
    });
    return (await Promise.all(interrupts)).flat();
  };
  const shown = async (event: AgUiEvent) => {
    if (event.type !== "RUN_FINISHED") return payload(event);
    try {
      return payload(interrupted(event, await gatesOf(held ?? encoder.heldRuns)));
    } catch (error) {
      const { message, code } = toErrorData(error);
      return payload({ type: "RUN_ERROR", message, code });
    }
  };
  yield* encoder.start(messages).map(payload);
  try {
    const conversation = () => findConversation({ actors, principal }, conversationId);
    const frames =
      turnId === undefined || held !== undefined
        ? []
        : turnFrames({ conversation, principal, turnId }, { ...start, signal });
    for await (const frame of frames) {
      for (const event of encoder.push(frame)) yield await shown(event);
      if (encoder.isOver) break;
    }
    if (signal.aborted) return;
    for (const event of encoder.end()) yield await shown(event);
  } catch (error) {
    if (!(error instanceof DramatisError)) console.error(error);
    yield* encoder.fail(toErrorData(error)).map(payload);
  }
}
