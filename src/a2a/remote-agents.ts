/**
 * The calls of agents of other servers, over A2A 1.0.
 *
 * A2ACALL-4  The message id of a call is its operation id, in all attempts. The message is stored before it is sent. The task is stored before the
 *            call follows it. So a repeated attempt sends the same message, or only asks for the task.
 *            The call is deleted with its result.
 * A2ACALL-5  The second call of a tool in a conversation continues the context of the first. A call with a `task_id` continues this task, if it
 *            has asked this conversation for input.
 * A2ACALL-9  If a call is cancelled, its task is cancelled at the server. If the answer to the message of an idempotent tool was lost, the
 *            cancellation sends the same message again to learn the task. If the call ends during its message, the attempt cancels the task,
 *            and repeats a failed cancellation three times.
 * A2ACALL-10  An attempt follows a new task for ten seconds. After that, each further attempt asks once, with growing pauses.
 * A2ACALL-11 If a request for a known task fails, the client asks again later, until the time limit of the tool. The call ends if the agent
 *            refuses the request by the protocol, or its answer is too large. Then the client cancels the task. The call also ends if the
 *            request is not permitted: four times within 21 seconds, its credentials are not accepted, or the address must not be reached.
 */
import type { DeployedCode } from "../library/registry/deployed-code.ts";
import { Asked, Continued } from "../library/tools/continued.ts";
import { a2aTarget, remoteMessage } from "../library/tools/remote-agent.ts";
import type { ToolContext } from "../library/tools/tool.ts";
import { ToolError } from "../library/tools/tool-error.ts";
import type { Clock } from "../ports/clock.ts";
import { sleepWith } from "../ports/deadline.ts";
import type { ToolInvocation, ToolState } from "../protocol/executor-api.ts";
import {
  A2A_VERSION,
  type LostMessage,
  REMOTE_STATE,
  type RemoteCall,
  remoteCallKey,
  remoteCallSchema,
  taskOfCall,
} from "../protocol/remote-call.ts";
import { defined } from "../shared/defined.ts";
import { hasCode, notFound, unavailable } from "../shared/errors.ts";
import type { CallContext } from "../shared/identifiers.ts";
import type { Json } from "../shared/json.ts";
import { sha256Hex } from "../shared/sha256.ts";
import { openKey, openOf, type RemoteTool, requestOf } from "./open-tasks.ts";
import { AgentRequests, Refusal, type RequestPorts } from "./requests.ts";
import { approvalQuestion, contentOf, isAsking, type OpenTask, openTask, taskResult } from "./results.ts";
import { cancelTask, isDenied, sendMessage, taskOf, taskOfMessage } from "./tasks.ts";
import { cardSchema, type RemoteTask } from "./wire.ts";

const CARD_PATH = ".well-known/agent-card.json";
/** An attempt follows a new task for this time, in milliseconds. */
const FOLLOW_MS = 10_000;
/** The pause between two requests of such an attempt, in milliseconds: the first, and the longest. */
const [FIRST_PAUSE_MS, MAX_PAUSE_MS] = [250, 2_000];
/** The pause between two attempts, in milliseconds: at least, at most, and as a share of the age of the call. */
const [MIN_WAIT_MS, MAX_WAIT_MS, WAIT_SHARE] = [2_000, 300_000, 0.2];
/** The pauses before repeated requests within an attempt, in milliseconds. */
const REPEAT_MS = [1_000, 4_000, 16_000];

export interface RemoteAgentPorts extends RequestPorts {
  clock: Pick<Clock, "now" | "timer">;
  /** The deployed tools. A tool in code reaches its address, whatever the deployer's list says. */
  code: Pick<DeployedCode, "definition">;
  credentials(
    project: Pick<CallContext, "tenant" | "projectId">,
    url: URL,
  ): Promise<readonly { header: string; value: string; secret: string }[]>;
}

/** Make one per request. */
export class RemoteAgents {
  constructor(private readonly ports: RemoteAgentPorts) {}

  /** Runs an attempt of a call. Throws `ToolError`. */
  async call(
    invocation: ToolInvocation,
    url: string,
    context: Pick<ToolContext, "state" | "signal">,
  ): Promise<Json | Continued | Asked> {
    const { tool, context: project } = invocation;
    const requests = await this.#requests({ tool, url }, project);
    return requests.redacting(() => this.#attempt(requests, invocation, url, context));
  }

  async #attempt(
    requests: AgentRequests,
    { tool, input, operationId, remote, answer: approval }: ToolInvocation,
    url: string,
    { state, signal }: Pick<ToolContext, "state" | "signal">,
  ): Promise<Json | Continued | Asked> {
    const key = remoteCallKey(operationId);
    let call = storedCall(await state.get(key));
    try {
      if (call?.taskId !== undefined)
        return await this.#asked(requests, call, call.taskId, { tool, url, state, signal });
      if (remote?.following)
        throw new ToolError(
          "Outcome unknown: the call was interrupted before the remote agent named its task, and the message may have arrived. It was not sent again.",
        );
      const { text, continues } = remoteMessage(input);
      if (text.trim() === "") throw new ToolError("The message is empty.", { code: "INVALID_INPUT" });
      if (call === undefined) {
        const open = await openOf(state, { tool, url }, continues);
        const begun = await this.#begin(requests, { tool, url, state, continues, open });
        const request = await requestOf(requests, begun, open, { text, tool, url, state });
        if (request !== undefined) {
          const question = await approvalQuestion(new URL(url).host, request, text);
          if (approval?.state !== question.state)
            return new Asked(
              question,
              "A person must approve the answer, and this call cannot ask a person.",
            );
          call = { ...begun, ...defined({ answers: request.id }) };
        }
        call ??= begun;
        // A cancellation without a stored call sends no request.
        signal.throwIfAborted();
        await state.put(key, call);
      } else if (
        call.answers === undefined &&
        (await requestOf(requests, call, undefined, { text, tool, url, state }))
      ) {
        throw new ToolError(
          'The task now waits for an approval. Make another call with the message "approve" or "deny".',
        );
      }
      const answer = await this.#send(requests, call, { operationId, text, tool, url, state });
      const contextId = "task" in answer ? answer.task.contextId : answer.message.contextId;
      requests.checkIds("task" in answer ? [answer.task.id, contextId] : [contextId]);
      const keepContext = async () => {
        if (contextId) await state.put(await contextKey({ tool, url }), contextId);
      };
      if ("message" in answer) {
        await keepContext();
        return requests.clean(contentOf([answer.message.parts]));
      }
      const { task } = answer;
      // First the task: a crash, or a deleted conversation, must not lose it.
      call = { ...call, taskId: task.id };
      if ((await state.get(key)) === null) throw notFound("The call has ended.");
      await state.put(key, call);
      await keepContext();
      // The question is answered.
      if (call.continues !== undefined) await state.put(await openKey({ tool, url }, call.continues), null);
      signal.throwIfAborted();
      return await this.#follow(requests, call, task, { tool, url, state, signal });
    } catch (error) {
      // A ToolError is the end of the attempt's time. The work continues.
      const isStopped = signal.aborted && !(signal.reason instanceof ToolError);
      const isOver = hasCode(error, "NOT_FOUND");
      // The conversation cancels the task that it knows (A2ATASK-2): also the task that a message without an answer continues.
      if ((isStopped || isOver) && call?.taskId !== undefined) {
        const cancel = cancelTask.bind(undefined, requests, call, call.taskId);
        await this.#repeated(cancel).catch(() => undefined);
      }
      throw error;
    }
  }

  /**
   * Cancels the task of a call, or the task that its message continues. `lost` is the message of a call without a task, if the message may be
   * sent again. Throws `UNAVAILABLE`. An agent that refuses is no error, because its task may be over.
   */
  async cancel(
    project: Pick<CallContext, "tenant" | "projectId">,
    remote: RemoteTool,
    call: RemoteCall,
    lost?: LostMessage,
  ): Promise<void> {
    if (taskOfCall(call) === undefined && lost === undefined) return;
    const requests = await this.#requests(remote, project);
    try {
      await requests.redacting(async () => {
        const id = taskOfCall(call) ?? (lost && (await taskOfMessage(requests, call, lost)));
        if (id !== undefined) await cancelTask(requests, call, id);
      });
    } catch (error) {
      if (!(error instanceof ToolError)) throw error;
      throw unavailable(error.message, { retriable: error.retriable });
    }
  }

  async #requests(
    { tool, url }: RemoteTool,
    { tenant, projectId }: Pick<CallContext, "tenant" | "projectId">,
  ): Promise<AgentRequests> {
    const inCode = await this.ports.code.definition("tool", tool);
    const isDeployed = a2aTarget(inCode?.definition.target)?.a2a === url;
    const credentials = (of: URL) => this.ports.credentials({ tenant, projectId }, of);
    return new AgentRequests(this.ports, { url, isDeployed, credentials });
  }

  /** Returns a new call, with the address of the agent, and the context or the task that it continues (A2ACALL-5). */
  async #begin(
    requests: AgentRequests,
    {
      state,
      continues,
      open,
      ...remote
    }: RemoteTool & { state: ToolState; continues: string | undefined; open: OpenTask | undefined },
  ): Promise<RemoteCall> {
    const begunAt = this.ports.clock.now();
    const contextId = open === undefined ? await state.get(await contextKey(remote)) : open.contextId;
    const { supportedInterfaces } = await requests.read(
      cardAddress(remote.url),
      cardSchema,
      "The agent card",
    );
    const found = supportedInterfaces.find(
      ({ protocolBinding, protocolVersion }) =>
        protocolBinding === "JSONRPC" && protocolVersion.split(".")[0] === A2A_VERSION.split(".")[0],
    );
    if (found === undefined) {
      const offered = supportedInterfaces.map((one) => `${one.protocolBinding} ${one.protocolVersion}`);
      throw new ToolError(
        `The agent card has no interface JSONRPC of A2A ${A2A_VERSION}. It has: ${offered.slice(0, 10).join(", ")}.`,
      );
    }
    const endpoint = URL.parse(found.url, remote.url);
    if (endpoint !== null) requests.checkAddress(endpoint);
    const call = remoteCallSchema.safeParse({
      ...{ endpoint: endpoint?.href.replace(/#.*/, ""), begunAt },
      ...(found.tenant && { tenant: found.tenant }),
      ...(typeof contextId === "string" && contextId !== "" && { contextId }),
      ...(continues !== undefined && { continues }),
    });
    if (call.success) return call.data;
    throw new ToolError(
      "The agent card names an address that is not valid. It has at most 2,000 characters.",
    );
  }

  async #send(
    requests: AgentRequests,
    call: RemoteCall,
    {
      operationId,
      text,
      state,
      ...remote
    }: RemoteTool & { operationId: string; text: string; state: ToolState },
  ) {
    const { contextId, continues: taskId } = call;
    try {
      return await sendMessage(requests, call, operationId, text);
    } catch (error) {
      if (!(error instanceof Refusal) || error.retriable || contextId === undefined || taskId !== undefined)
        throw error;
      // The agent may have forgotten the context.
      await state.put(await contextKey(remote), null);
      throw new Refusal(`${error.message}. The next call begins a new context.`);
    }
  }

  /** Follows a new task for a while. */
  async #follow(
    requests: AgentRequests,
    call: RemoteCall,
    begun: RemoteTask,
    { signal, ...remote }: RemoteTool & { state: ToolState; signal: AbortSignal },
  ): Promise<Json | Continued> {
    const { clock } = this.ports;
    const until = clock.now() + FOLLOW_MS;
    let task: RemoteTask | null = begun;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
      const result = task && (await this.#ended(requests, task, remote));
      if (result !== undefined && result !== null) return result.value;
      if (clock.now() + pause > until) return this.#later(call);
      await sleepWith(clock.timer, pause, signal);
      task = await this.#repeated(() => taskOf(requests, call, begun.id), { signal, isAgain: isDenied });
    }
  }

  /** Asks once for a task that works for longer. */
  async #asked(
    requests: AgentRequests,
    call: RemoteCall,
    taskId: string,
    { signal, ...remote }: RemoteTool & { state: ToolState; signal: AbortSignal },
  ): Promise<Json | Continued> {
    const task = await this.#repeated(() => taskOf(requests, call, taskId), { signal, isAgain: isDenied });
    if (task !== null) await repair(requests, call, task, remote);
    const result = task && (await this.#ended(requests, task, remote));
    return result?.value ?? this.#later(call);
  }

  /** Repeats work that fails, after each of `REPEAT_MS`. */
  async #repeated<Value>(
    work: () => Promise<Value>,
    { signal, isAgain = () => true }: { signal?: AbortSignal; isAgain?: (error: unknown) => boolean } = {},
  ): Promise<Value> {
    for (const pause of REPEAT_MS) {
      try {
        return await work();
      } catch (error) {
        if (!isAgain(error)) throw error;
      }
      await sleepWith(this.ports.clock.timer, pause, signal);
    }
    return work();
  }

  #later({ begunAt }: RemoteCall): Continued {
    const now = this.ports.clock.now();
    const wait = Math.min(Math.max((now - begunAt) * WAIT_SHARE, MIN_WAIT_MS), MAX_WAIT_MS);
    return new Continued(now + Math.round(wait));
  }

  /** Returns the result of a task; `undefined` while it works. Notes a task that waits for input. Throws `ToolError`. */
  async #ended(
    requests: AgentRequests,
    task: RemoteTask,
    { state, ...remote }: RemoteTool & { state: ToolState },
  ): Promise<{ value: Json } | undefined> {
    const value = taskResult(task);
    if (value === undefined) return undefined;
    if (isAsking(task)) await state.put(await openKey(remote, task.id), requests.clean(openTask(task)));
    return { value: requests.clean(value) };
  }
}

/** Returns the call that an earlier attempt has stored. Throws `ToolError`, because a call that cannot be read must not be sent again. */
function storedCall(value: Json): RemoteCall | undefined {
  if (value === null) return undefined;
  const { data } = remoteCallSchema.safeParse(value);
  if (data !== undefined) return data;
  throw new ToolError(
    "The stored call cannot be read. Its message may have arrived, and was not sent again.",
  );
}

/** Stores what an attempt stores after the task: a crash may have ended it before. */
async function repair(
  requests: AgentRequests,
  { continues }: RemoteCall,
  { contextId }: RemoteTask,
  { state, ...remote }: RemoteTool & { state: ToolState },
): Promise<void> {
  requests.checkIds([contextId]);
  const key = await contextKey(remote);
  if (contextId && (await state.get(key)) === null) await state.put(key, contextId);
  if (continues !== undefined) await state.put(await openKey(remote, continues), null);
}

function cardAddress(address: string): URL {
  const url = new URL(address);
  if (!url.pathname.endsWith(".json")) url.pathname = `${url.pathname.replace(/\/+$/, "")}/${CARD_PATH}`;
  return url;
}

/** Returns the key of the newest context of a tool in its conversation. */
async function contextKey({ tool: { library, id }, url }: RemoteTool): Promise<string> {
  return `${REMOTE_STATE}context.${await sha256Hex([url, library, id].join("\n"))}`;
}
