/** The entrance of a conversation's actor: who may come in, and the parts of `door/` that take requests, connected. */

import { checkAnswerer } from "../../policy/answerers.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ids } from "../../ports/ids.ts";
import type { AgentApi } from "../../protocol/agent-api.ts";
import type { ApprovalAnswer } from "../../protocol/approval.ts";
import type {
  ConversationApi,
  CreateConversation,
  ResolvedApproval,
  SubmittedResult,
} from "../../protocol/conversation-api.ts";
import { stemOf } from "../../protocol/ids.ts";
import { checkNew, checkTogether, type LocationPolicy } from "../../protocol/location-policy.ts";
import type { ToolSubmission } from "../../protocol/requests.ts";
import type { StartedTurn } from "../../protocol/signals.ts";
import type { ConversationView } from "../../protocol/views.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, unwrap } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";
import { validate } from "../../shared/validation.ts";
import type { Client } from "../base/sockets/client.ts";
import type { ConversationState } from "./core/state.ts";
import { checkReader, checkSpeaker, mayRead, noConversation, noConversationAt } from "./inbound/access.ts";
import { approveBelow } from "./inbound/approve-below.ts";
import { Claims } from "./inbound/claims.ts";
import type { ConnectionPorts } from "./inbound/connections.ts";
import {
  agentPart,
  checkActorName,
  checkSameRequest,
  conversationRecord,
  parseCreate,
} from "./inbound/create-conversation.ts";
import { Ingress } from "./inbound/ingress.ts";
import { Participants } from "./inbound/participants.ts";
import { approvalSchema, messageOf, parseSubmissions, startTurnSchema } from "./inbound/requests.ts";
import { seedEvents } from "./inbound/seed-history.ts";
import { Stops } from "./inbound/stops.ts";
import type { ConversationParts } from "./parts.ts";
import { conversationView, resolvedApproval } from "./reads/views.ts";

export interface EntrancePorts {
  clock: Clock;
  ids: Ids;
  parts: ConversationParts;
  /** Returns the actor's name. */
  name(): string;
  /** Finds the actor of an agent. */
  agent(tenant: string, id: string): Promise<Pick<AgentApi, "persona">>;
  /** Finds the actor of another conversation. */
  conversation(tenant: string, id: string): Promise<Pick<ConversationApi, "resolveApproval">>;
  /** Where the conversations of a tenant may live. */
  location(tenant: string): LocationPolicy;
  /** Returns the open connections. */
  clients(): Iterable<Client>;
}

export class Entrance {
  readonly stops: Stops;
  readonly ingress: Ingress;
  readonly participants: Participants;
  readonly connections: ConnectionPorts;

  constructor(private readonly ports: EntrancePorts) {
    const { runtime, queries, readers, announcement } = ports.parts;
    const { clients, clock, ids } = ports;
    const stateFor = (principal: Principal) => this.stateFor(principal);
    const speaks = (principal: Principal) => this.checkSpeaker(principal);
    this.stops = new Stops({ runtime, queries, stateFor, checkSpeaker: speaks });
    this.ingress = new Ingress({
      runtime,
      stops: this.stops,
      checkSpeaker: speaks,
      stem: () => stemOf(ids.ulid()),
      pause: () => clock.sleep(0),
    });
    this.participants = new Participants({
      runtime,
      agent: ports.agent,
      location: ports.location,
      checkSpeaker: speaks,
      expel: () => this.expel(),
      publish: () => announcement.listing.publish(),
      clock,
    });
    this.connections = {
      cursor: (principal, start) => {
        this.stateFor(principal);
        return readers.cursor(start);
      },
      readers: readers.sockets,
      claims: new Claims({
        clients,
        checkSpeaker: speaks,
        checkCall: (operationId) => runtime.results.checkClientCall(operationId),
      }),
      stops: this.stops,
      startTurn: (principal, input) => this.accept(principal, input),
      approve: async (principal, { v: _v, type: _type, operationId, ...answer }) => {
        await this.approve(principal, operationId, answer);
      },
      submitResult: async (principal, { v: _v, type: _type, ...result }) => {
        await this.submit(principal, [result]);
      },
      connections: () => [...clients()].length,
      clock,
    };
  }

  /** Throws `NOT_FOUND` unless the conversation exists and this principal may read it. */
  stateFor(reader: Principal): ConversationState {
    const state = this.#requireState();
    checkReader(state.record, reader);
    return state;
  }

  /** Reports whether the conversation exists and this principal may read it. */
  mayRead(principal: Principal): boolean {
    const { runtime } = this.ports.parts;
    return runtime.exists && mayRead(runtime.state.record, principal);
  }

  /** Throws `NOT_FOUND` or `FORBIDDEN` unless this principal may speak in the conversation. */
  checkSpeaker(principal: Principal): void {
    checkSpeaker(this.#requireState().record, principal);
  }

  /** Ends the connections of those who may not read the conversation. */
  expel(): void {
    this.ports.parts.readers.expel((principal) => this.mayRead(principal));
  }

  /** Creates the conversation. The same request again returns it, where the request has a fingerprint. */
  async create(principal: Principal, input: CreateConversation): Promise<ConversationView> {
    const { parts, clock, ids, agent, name, location } = this.ports;
    const { runtime, announcement } = parts;
    const request = parseCreate(input);
    const { agentId, fingerprint } = request;
    const part = unwrap(await agentPart(clock, () => agent(principal.tenant, agentId)));
    checkActorName(name(), principal, request);
    if (fingerprint !== undefined && runtime.exists) {
      const state = this.stateFor(principal);
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
    if (record.listed !== false) await announcement.listing.publish();
    return conversationView(runtime.state);
  }

  /** Accepts a message, as `startTurn` of the actor. */
  async accept(principal: Principal, input: unknown): Promise<StartedTurn> {
    this.checkSpeaker(principal);
    return this.ports.parts.runtime.accept(messageOf(principal, validate(startTurnSchema, input)));
  }

  /** Takes results of tools that clients run. */
  async submit(principal: Principal, results: ToolSubmission[]): Promise<SubmittedResult[]> {
    this.checkSpeaker(principal);
    return this.ports.parts.runtime.results.submit(parseSubmissions(results));
  }

  /** Takes a person's answer to a request for approval. The rule of the request names who may answer (ACCESS-3). */
  async approve(
    principal: Principal,
    operationId: string,
    answer: ApprovalAnswer,
  ): Promise<ResolvedApproval> {
    const { record } = this.#requireState();
    const { results } = this.ports.parts.runtime;
    const asking = results.askingConversation(operationId);
    if (asking !== undefined) return this.#approveBelow(principal, asking, operationId, answer);
    checkAnswerer(results.answeredBy(operationId), principal, {
      tenant: record.tenant,
      isReader: mayRead(record, principal),
      unknown: () => noConversation(record.id),
    });
    const { approved, reason } = validate(approvalSchema, answer);
    const caller = { type: "user", userId: principal.subject } as const;
    const found = await results.approve(operationId, { approved, caller, ...defined({ reason }) });
    return resolvedApproval(record, found.turn, found.operation);
  }

  /** Passes an answer to the conversation that asks, which has the rule. Hides both conversations from strangers. */
  async #approveBelow(
    principal: Principal,
    asking: string,
    ...answer: [operationId: string, answer: ApprovalAnswer]
  ): Promise<ResolvedApproval> {
    const { record } = this.#requireState();
    const isReader = mayRead(record, principal);
    if (record.tenant !== principal.tenant) throw noConversation(record.id);
    const below = () => this.ports.conversation(record.tenant, asking);
    try {
      return await approveBelow(this.ports.clock, below, principal, ...answer);
    } catch (error) {
      const isHidden = !isReader && error instanceof DramatisError && error.code === "NOT_FOUND";
      throw isHidden ? noConversation(record.id) : error;
    }
  }

  /** Throws `NOT_FOUND` before the conversation was created. */
  #requireState(): ConversationState {
    const { runtime } = this.ports.parts;
    if (runtime.exists) return runtime.state;
    throw noConversationAt(this.ports.name());
  }
}
