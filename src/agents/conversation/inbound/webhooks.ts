/**
 * Webhooks of turns. A webhook is a subscriber at an address outside: the mailbox delivers its envelopes by HTTP.
 *
 * PUSHED-1  A change of a turn's state and the envelope of its notice are one commit. A notice has the present state of the turn, so the last
 *            notice has its end. A notice may arrive twice, also after a crash.
 * PUSHED-2  The mailbox repeats a failed notice up to its last attempt. After that, or after a refusal, the webhook gets no further notice.
 * PUSHED-3  The headers of a webhook are in the storage of its conversation only. No method returns them, and no envelope has them. They are
 *            deleted after the last notice.
 * PUSHED-4  A webhook has the rights of its person as a participant, without roles. If the person leaves, the notices end. Others do not see the
 *            webhook.
 */
import type { ActorAddress } from "../../../protocol/envelope.ts";
import type { Answer, MailboxPeer } from "../../../protocol/mailbox-api.ts";
import { conversationFrames } from "../../../protocol/subscribers.ts";
import {
  MAX_WEBHOOKS,
  type NewWebhook,
  newWebhook,
  WEBHOOK,
  type WebhookView,
} from "../../../protocol/webhooks.ts";
import { conflict, DramatisError, notFound, toErrorData } from "../../../shared/errors.ts";
import type { Principal } from "../../../shared/principal.ts";
import { validate, validateRequest } from "../../../shared/validation.ts";
import type { DeliveryOutcome } from "../../base/mailbox/handlers.ts";
import type { ActorContext, StoredConversation } from "../context.ts";
import type { ConversationQueries } from "../reads/queries.ts";
import { noConversation } from "./access.ts";
import type { Subscribers } from "./subscribers.ts";

interface WebhooksContext extends Pick<ActorContext, "keyValue" | "postWebhook"> {
  access: { mayRead(principal: Principal): boolean };
  runtime: StoredConversation;
  queries: Pick<ConversationQueries, "requireTurn" | "view">;
  subscribers: Pick<Subscribers, "subscribe" | "unsubscribe">;
}

interface StoredWebhook extends NewWebhook {
  principal: Principal;
}

const PREFIX = "webhook:";
/** The frames that change the state of a turn. */
const TYPES = ["approval.requested", "approval.resolved", "turn.completed", "turn.failed"] as const;

export class Webhooks {
  constructor(private readonly context: WebhooksContext) {}

  /**
   * Adds a webhook, or replaces it. The present state of the turn is its first notice, if the turn waits for a person or is over. Throws `NOT_FOUND`,
   * `CONFLICT` for too many webhooks, `UNSUPPORTED` without a sender.
   */
  async put(caller: Principal, input: unknown): Promise<WebhookView> {
    const hook = validateRequest(newWebhook, input);
    const { access, keyValue, postWebhook, queries, runtime, subscribers } = this.context;
    if (postWebhook === undefined)
      throw new DramatisError("UNSUPPORTED", "This deployment sends no notices to webhooks.");
    const principal = asParticipant(caller);
    if (!access.mayRead(principal)) throw noConversation(runtime.state.record.id);
    const { firstSeq } = queries.requireTurn(runtime.state, hook.turnId);
    const key = keyOf(hook);
    const known = keyValue.get<StoredWebhook>(key);
    if (known !== undefined && known.principal.subject !== caller.subject)
      throw conflict(`Another webhook of the task has the id "${hook.id}". Use another id.`);
    if (known === undefined && this.#of(hook.turnId).length >= MAX_WEBHOOKS)
      throw conflict(`A task has at most ${MAX_WEBHOOKS} webhooks. Delete a webhook first.`);
    keyValue.put(key, { ...hook, principal });
    try {
      const types = [...TYPES];
      await subscribers.subscribe(principal, { to: this.#address(hook), from: firstSeq - 1, types });
    } catch (error) {
      keyValue.delete(key);
      throw error;
    }
    return viewOf(hook);
  }

  list({ subject }: Principal, turnId: string): WebhookView[] {
    return this.#of(turnId)
      .filter(({ principal }) => principal.subject === subject)
      .map(viewOf);
  }

  /** Removes a webhook. It is a no-op without one, and for the webhook of another person. */
  remove({ subject }: Principal, turnId: string, id: string): void {
    const key = keyOf({ turnId, id });
    const hook = this.context.keyValue.get<StoredWebhook>(key);
    if (hook?.principal.subject !== subject) return;
    this.context.subscribers.unsubscribe(hook.principal, this.#address(hook));
    this.context.keyValue.delete(key);
  }

  /** The receiver of the envelopes of all webhooks. */
  readonly peer: MailboxPeer = {
    receive: async ({ to, body }): Promise<Answer> => {
      const { frames, ended } = validate(conversationFrames, body);
      if (ended !== undefined) return { type: "done", result: { over: true } };
      const hook = this.#at(to);
      if (hook === undefined) return refused(notFound("The webhook was deleted."));
      const { turnId, url, headers, principal: reader } = hook;
      if (!frames.some((frame) => frame.turnId === turnId)) return { type: "done", result: null };
      const { postWebhook, queries, runtime } = this.context;
      const turn = queries.view(runtime.state, queries.requireTurn(runtime.state, turnId));
      const conversationId = runtime.state.record.id;
      try {
        await postWebhook?.({ url, headers, conversationId, turn, reader });
      } catch (error) {
        if (!(error instanceof DramatisError)) throw error;
        return error.retriable ? { type: "busy", error: toErrorData(error) } : refused(error);
      }
      return { type: "done", result: { over: turn.status !== "active" } };
    },
  };

  /** Takes the outcome of an envelope, after the subscription took it. */
  settle({ envelope: { to }, outcome }: DeliveryOutcome): void {
    const hook = to.kind === WEBHOOK ? this.#at(to) : undefined;
    if (hook === undefined) return;
    const isOver = outcome.status !== "delivered" || Reflect.get(Object(outcome.result), "over") === true;
    if (!isOver) return;
    if (this.context.runtime.exists) this.context.subscribers.unsubscribe(hook.principal, to);
    this.context.keyValue.put(PREFIX + to.id, { ...hook, headers: {} });
  }

  #of(turnId: string): StoredWebhook[] {
    return this.context.keyValue
      .list<StoredWebhook>(`${PREFIX}${turnId}.`, MAX_WEBHOOKS)
      .map(([, hook]) => hook);
  }

  #at({ id }: ActorAddress): StoredWebhook | undefined {
    return this.context.keyValue.get<StoredWebhook>(PREFIX + id);
  }

  #address(hook: Pick<NewWebhook, "turnId" | "id">): ActorAddress {
    const { tenant } = this.context.runtime.state.record;
    return { kind: WEBHOOK, tenant, id: idOf(hook) };
  }
}

function idOf({ turnId, id }: Pick<NewWebhook, "turnId" | "id">): string {
  return `${turnId}.${id}`;
}

function keyOf(hook: Pick<NewWebhook, "turnId" | "id">): string {
  return PREFIX + idOf(hook);
}

/** Returns a person without roles and without the end of the token. */
function asParticipant({ subject, tenant }: Principal): Principal {
  return { subject, tenant, roles: [] };
}

function viewOf({ turnId, id, url, scheme }: WebhookView): WebhookView {
  return { turnId, id, url, ...(scheme !== undefined && { scheme }) };
}

function refused(error: DramatisError): Answer {
  return { type: "refused", error: error.toData(), recorded: true };
}
