/**
 * The RPC methods by which principals read a conversation: its messages, turns, requests, traces, recordings, journal,
 * projections, causes and incidents.
 *
 * RECORDINGS-1  Readers of a conversation may replay its turns. A recording has the versions of the agents, so it needs the rights of an
 *               export.
 */
import { spendingView } from "../../protocol/budget.ts";
import type { ActorAddress } from "../../protocol/envelope.ts";
import type { JournalPageOptions } from "../../protocol/journal.ts";
import type { ProjectionOptions } from "../../protocol/projection-schemas.ts";
import type { CauseOptions, IncidentOptions } from "../../protocol/record-schemas.ts";
import type { SubscribeActor } from "../../protocol/subscribers.ts";
import type { NewWebhook } from "../../protocol/webhooks.ts";
import { asDone, asResult, type Result } from "../../shared/errors.ts";
import type { PageOptions } from "../../shared/page.ts";
import type { Principal } from "../../shared/principal.ts";
import { replayRecording } from "./core/replay/replay.ts";
import { type ConversationState, workspaceIn } from "./core/state.ts";
import { checkKeeper, checkOperator } from "./inbound/access.ts";
import { usageView } from "./reads/call-views.ts";
import { readCauses, readIncidents } from "./reads/record-lists.ts";
import { conversationView } from "./reads/views.ts";
import { RemovableConversation } from "./removable-conversation.ts";
import type { ConversationContext } from "./wiring.ts";

export abstract class ReadableConversation<Env extends Cloudflare.Env> extends RemovableConversation<Env> {
  async view(principal: Principal) {
    return readAs(this.context, principal, (state) => ({
      ...conversationView(state),
      usage: usageView(state.usage),
      spent: spendingView(state.spent),
    }));
  }

  async workspace(principal: Principal) {
    return readAs(this.context, principal, ({ record }) => ({
      project: record.projectId,
      ...workspaceIn(record),
    }));
  }

  async messages(principal: Principal, options?: PageOptions) {
    return readAs(this.context, principal, (state) => this.context.queries.messages(state, options));
  }

  async turns(principal: Principal, options?: PageOptions) {
    return readAs(this.context, principal, () => this.context.queries.turns(options));
  }

  async turn(principal: Principal, turnId: string) {
    return readAs(this.context, principal, (state) => this.context.queries.turn(state, turnId));
  }

  async promptOfTurn(principal: Principal, turnId: string, call?: number) {
    return readAs(this.context, principal, (state) => {
      checkOperator(principal);
      return this.context.runtime.prompt(this.context.queries.requireTurn(state, turnId), call);
    });
  }

  async traceTurn(principal: Principal, turnId?: string, invitedBy?: string) {
    return readAs(this.context, principal, (state) =>
      this.context.queries.trace(state, turnId, { principal, invitedBy, now: this.context.clock.now() }),
    );
  }

  async recordTurn(principal: Principal, turnId: string) {
    return readAs(this.context, principal, (state) => {
      checkKeeper(state.record, principal);
      return this.context.queries.recording(state, turnId, this.context);
    });
  }

  async replayTurn(principal: Principal, turnId: string) {
    return readAs(this.context, principal, (state) =>
      replayRecording(this.context.queries.recording(state, turnId, this.context)),
    );
  }

  async subscribeActor(principal: Principal, input: SubscribeActor) {
    return asResult(() => {
      this.context.access.stateFor(principal);
      return this.context.subscribers.subscribe(principal, input);
    });
  }

  async unsubscribeActor(principal: Principal, to: ActorAddress) {
    return asDone(() => {
      this.context.access.stateFor(principal);
      this.context.subscribers.unsubscribe(principal, to);
    });
  }

  async addWebhook(principal: Principal, hook: NewWebhook) {
    return asResult(() => {
      this.context.access.stateFor(principal);
      return this.context.webhooks.put(principal, hook);
    });
  }

  async webhooks(principal: Principal, turnId: string) {
    return readAs(this.context, principal, () => this.context.webhooks.list(principal, turnId));
  }

  async removeWebhook(principal: Principal, turnId: string, id: string) {
    return asDone(() => {
      this.context.access.stateFor(principal);
      this.context.webhooks.remove(principal, turnId, id);
    });
  }

  async journal(principal: Principal, options?: JournalPageOptions) {
    return readAs(this.context, principal, (state) => this.context.queries.journal(state, options));
  }

  async projection(principal: Principal, name: string, options?: ProjectionOptions) {
    return readAs(this.context, principal, (state) => this.context.record.projection(state, name, options));
  }

  async causes(principal: Principal, seq: number, options?: CauseOptions) {
    return readAs(this.context, principal, (state) =>
      readCauses(state, this.context.runtime.store, seq, options),
    );
  }

  async incidents(principal: Principal, options?: IncidentOptions) {
    return readAs(this.context, principal, (state) =>
      readIncidents(state, this.context.runtime.store, options),
    );
  }
}

/** Reads the state for a principal. Throws `NOT_FOUND` without read access. A method of the class would be callable by RPC. */
export function readAs<Value>(
  { access }: Pick<ConversationContext, "access">,
  principal: Principal,
  body: (state: ConversationState) => Value,
): Promise<Result<Value>> {
  return asResult(() => body(access.stateFor(principal)));
}
