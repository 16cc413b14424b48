/** The requests of principals to a conversation: its creation, messages, results of clients' tools, and answers to requests for approval. */
import { checkAnswerer } from "../../../policy/answerers.ts";
import type { Clock } from "../../../ports/clock.ts";
import { unanswered, withDeadline } from "../../../ports/deadline.ts";
import type { AgentApi } from "../../../protocol/agent-api.ts";
import type { ConversationApi } from "../../../protocol/conversation-api.ts";
import type { CreateConversation } from "../../../protocol/conversation-requests.ts";
import type {
  ConversationView,
  ResolvedApproval,
  SubmittedResult,
} from "../../../protocol/conversation-schemas.ts";
import { checkNew, checkTogether } from "../../../protocol/location-policy.ts";
import type { ApprovalAnswer, CallAnswers, StartTurn } from "../../../protocol/requests.ts";
import { approvalAnswer, callAnswersSchema, type ToolSubmission } from "../../../protocol/requests.ts";
import type { StartedTurn } from "../../../protocol/signals.ts";
import { defined } from "../../../shared/defined.ts";
import { hasCode, type Result, unwrap } from "../../../shared/errors.ts";
import type { Principal } from "../../../shared/principal.ts";
import { validateRequest } from "../../../shared/validation.ts";
import type { ActorContext, Find } from "../context.ts";
import { conversationView, resolvedApproval } from "../reads/views.ts";
import type { ConversationRuntime } from "../runtime.ts";
import { type ConversationAccess, mayRead, noConversation } from "./access.ts";
import {
  agentPart,
  checkActorName,
  checkSameRequest,
  conversationRecord,
  parseCreate,
} from "./create-conversation.ts";
import { keyConflict } from "./message-checks.ts";
import { messageOf, parseSubmissions, startTurnSchema } from "./requests.ts";
import { seedEvents } from "./seed-history.ts";

interface RequestContext
  extends Pick<ActorContext, "clock" | "ids" | "name" | "conversation" | "location" | "listing"> {
  agent: Find<Pick<AgentApi, "persona">>;
  access: ConversationAccess;
  runtime: ConversationRuntime;
}

/** Time limit of an answer from a called conversation, in milliseconds. */
export const BELOW_TIMEOUT_MS = 15_000;

export class PrincipalRequests {
  constructor(private readonly context: RequestContext) {}

  /** Creates the conversation. The same request again returns it, if the request has a fingerprint. */
  async create(principal: Principal, input: CreateConversation): Promise<ConversationView> {
    const { access, runtime, clock, ids, agent, name, location, listing } = this.context;
    const request = parseCreate(input);
    const { agentId, projectId, fingerprint } = request;
    const projects = projectId === undefined ? undefined : [projectId];
    const part = unwrap(await agentPart(clock, () => agent(principal.tenant, agentId), projects));
    checkActorName(name(), principal, request);
    if (fingerprint !== undefined && runtime.exists) {
      const state = access.stateFor(principal);
      checkSameRequest(state.record, fingerprint);
      return conversationView(state);
    }
    const policy = location(principal.tenant);
    checkNew(request.id, policy, "/jurisdiction");
    checkTogether(request.id, agentId, policy);
    const now = clock.now();
    const record = conversationRecord(principal, request, part, now);
    const origin = { sessionId: agentId, userId: principal.subject, now, ids };
    const history = seedEvents(request.history ?? [], origin);
    await runtime.create(record, {
      history,
      ...defined({ order: request.turns, budget: request.budget }),
      ...(request.orchestration === false ? { orchestration: false } : {}),
    });
    if (record.listed !== false) await listing.publish();
    return conversationView(runtime.state);
  }

  /** Checks the first message of a conversation before its creation, as `checkFirst` of the actor. */
  async checkFirst(principal: Principal, input?: StartTurn): Promise<void> {
    const message = input && messageOf(principal, validateRequest(startTurnSchema, input));
    await this.context.runtime.checkFirst(message);
  }

  /** Accepts a message, as `startTurn` of the actor. */
  async accept(principal: Principal, input: unknown): Promise<StartedTurn> {
    this.context.access.checkSpeaker(principal);
    return this.context.runtime.accept(messageOf(principal, validateRequest(startTurnSchema, input)));
  }

  /** Takes results of tools that clients run. */
  async submit(principal: Principal, results: ToolSubmission[]): Promise<SubmittedResult[]> {
    this.context.access.checkSpeaker(principal);
    return (await this.context.runtime.results.submit(parseSubmissions(results))).submitted;
  }

  /** Takes a person's answer to a request for approval. The rule of the request names who may answer (ACCESS-3). */
  async approve(
    principal: Principal,
    operationId: string,
    answer: ApprovalAnswer,
  ): Promise<ResolvedApproval> {
    const { record } = this.context.access.state;
    const { results } = this.context.runtime;
    const asking = results.askingConversation(operationId);
    if (asking !== undefined)
      return this.#below(principal, asking, (below) => below.resolveApproval(principal, operationId, answer));
    this.#checkAnswerer(principal, operationId);
    const found = await results.approve(operationId, {
      ...validateRequest(approvalAnswer, answer),
      caller: callerOf(principal),
    });
    return resolvedApproval(record, found.turn, found.operation);
  }

  /** Reports whether a request for approval has this answer. Throws as `approve`. Takes no answer, but commits an expiry that is due. */
  async hasAnswer(principal: Principal, operationId: string, answer: ApprovalAnswer): Promise<boolean> {
    void this.context.access.state;
    const { results } = this.context.runtime;
    const asking = results.askingConversation(operationId);
    if (asking !== undefined)
      return this.#below(principal, asking, (below) => below.hasApproval(principal, operationId, answer));
    this.#checkAnswerer(principal, operationId);
    return results.hasAnswer(operationId, validateRequest(approvalAnswer, answer));
  }

  /** Takes answers that come together, as `answerCalls` of the actor. */
  async answerAll(principal: Principal, given: CallAnswers): Promise<string[]> {
    const { results, store } = this.context.runtime;
    const { approvals, results: submitted, key } = validateRequest(callAnswersSchema, given);
    const { access } = this.context;
    access.stateFor(principal);
    const repeated = new Set<string>();
    for (const { mayBeOver, operationId, ...answer } of approvals)
      await unlessOver(mayBeOver, async () => {
        if (await this.hasAnswer(principal, operationId, answer)) repeated.add(operationId);
      });
    const isBelow = ({ operationId }: { operationId: string }) =>
      results.askingConversation(operationId) !== undefined;
    const below = approvals.filter(isBelow);
    const own = approvals.filter((answer) => !isBelow(answer));
    if (key !== undefined) {
      const [caller, ids] = [callerOf(principal), approvals.map(({ operationId }) => operationId)];
      const known = store.answeredWith(caller, key);
      const denied = store.answeredWith(caller, `denied ${key}`);
      const isOther = approvals.some(
        ({ approved, operationId }) =>
          known.includes(operationId) && approved === denied.includes(operationId),
      );
      if ((known.length > 0 && known.join() !== ids.join()) || isOther) throw keyConflict();
      store.noteAnswered(caller, key, ids);
      const denials = approvals.filter(({ approved }) => !approved).map(({ operationId }) => operationId);
      if (denials.length > 0) store.noteAnswered(caller, `denied ${key}`, denials);
    }
    const changed: string[] = [];
    if (submitted !== undefined) {
      access.checkSpeaker(principal);
      changed.push(...(await results.submit(parseSubmissions(submitted))).changed);
    }
    for (const { mayBeOver, operationId, ...answer } of [...below, ...own]) {
      const isOver = await unlessOver(mayBeOver, () => this.approve(principal, operationId, answer));
      if (!isOver && !repeated.has(operationId)) changed.push(operationId);
    }
    return changed;
  }

  answeredWith(principal: Principal, key: string): string[] {
    this.context.access.stateFor(principal);
    return [...this.context.runtime.store.answeredWith(callerOf(principal), key)];
  }

  #checkAnswerer(principal: Principal, operationId: string): void {
    const { record } = this.context.access.state;
    checkAnswerer(this.context.runtime.results.answeredBy(operationId), principal, {
      tenant: record.tenant,
      isReader: mayRead(record, principal),
      unknown: () => noConversation(record.id),
    });
  }

  /** Passes an answer to the conversation that asks, which has the rule. Hides both conversations from strangers. */
  async #below<Value>(
    principal: Principal,
    asking: string,
    pass: (below: Below) => Promise<Result<Value>>,
  ): Promise<Value> {
    const { access, clock, conversation } = this.context;
    const { record } = access.state;
    const isReader = mayRead(record, principal);
    if (record.tenant !== principal.tenant) throw noConversation(record.id);
    try {
      return await askBelow(clock, () => conversation(record.tenant, asking), pass);
    } catch (error) {
      const isHidden = !isReader && hasCode(error, "NOT_FOUND");
      throw isHidden ? noConversation(record.id) : error;
    }
  }
}

/** Runs `act`. If `mayBeOver` is true, ignores the conflict of a request that is over. Returns whether it is over. */
async function unlessOver(mayBeOver: true | undefined, act: () => unknown): Promise<boolean> {
  try {
    await act();
    return false;
  } catch (error) {
    if (mayBeOver !== true || !hasCode(error, "CONFLICT")) throw error;
    return true;
  }
}

function callerOf({ subject }: Principal) {
  return { type: "user", userId: subject } as const;
}

type Below = Pick<ConversationApi, "resolveApproval" | "hasApproval">;

/** Passes a person's answer to the conversation of an agent below, which decides (ASK-1). Throws `UNAVAILABLE` if the conversation does not answer in time: it may have the answer. */
export async function askBelow<Value>(
  clock: Pick<Clock, "timer">,
  conversation: () => Promise<Below>,
  pass: (below: Below) => Promise<Result<Value>>,
): Promise<Value> {
  const reason = unanswered("The conversation of the agent that asks", BELOW_TIMEOUT_MS);
  const ask = async () => pass(await conversation());
  return unwrap(await withDeadline(clock, BELOW_TIMEOUT_MS, ask, { reason }));
}
