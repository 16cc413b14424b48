/**
 * Rules of access to a conversation.
 *
 * ACCESS-2  Readers of a conversation may also read the conversations that its calls open, stop them, and answer their requests for
 *           approval. Only the calling agent may speak there or change these conversations. This rule also applies to admins.
 * ACCESS-3  The rule of a request for approval names who may answer it (WHO-1). A reader whom the rule excludes gets `PERMISSION_DENIED`.
 *           The rule may admit people who may not read the conversation. They may read and answer only the request.
 */
import { type DramatisError, forbidden, notFound } from "../../../shared/errors.ts";
import { checkPrincipal, mayReadAll, type Principal } from "../../../shared/principal.ts";
import type { ActorContext, StoredConversation } from "../context.ts";
import type { ConversationIdentity, ConversationState } from "../core/state.ts";

interface AccessContext extends Pick<ActorContext, "name"> {
  runtime: Pick<StoredConversation, "exists" | "state">;
}

/** Decides who may use the conversation of an actor. */
export class ConversationAccess {
  constructor(private readonly context: AccessContext) {}

  /** Returns the state. Throws `NOT_FOUND` before the conversation was created. */
  get state(): ConversationState {
    const { runtime, name } = this.context;
    if (runtime.exists) return runtime.state;
    throw noConversationAt(name());
  }

  /** Throws `NOT_FOUND` unless the conversation exists and this principal may read it. */
  stateFor(principal: Principal): ConversationState {
    const { state } = this;
    checkReader(state.record, principal);
    return state;
  }

  mayRead(principal: Principal): boolean {
    const { runtime } = this.context;
    return runtime.exists && mayRead(runtime.state.record, principal);
  }

  /** Throws `NOT_FOUND` or `FORBIDDEN` unless this principal may speak in the conversation. */
  checkSpeaker(principal: Principal): void {
    checkSpeaker(this.state.record, principal);
  }
}

/**
 * Throws `NOT_FOUND`, as for an unknown conversation, unless the principal may read this conversation. Throws `INVALID_INPUT` for an
 * invalid principal (ACCESS-1).
 */
function checkReader(record: ConversationIdentity, principal: Principal): void {
  if (!mayRead(record, principal)) throw noConversation(record.id);
}

/** Reports whether the principal may read the conversation. Throws `INVALID_INPUT` for an invalid principal (ACCESS-1). */
export function mayRead(record: ConversationIdentity, principal: Principal): boolean {
  checkPrincipal(principal);
  const { tenant, subject } = principal;
  const isReader = isParticipant(record, principal) || record.call?.readers.includes(subject);
  return record.tenant === tenant && (isReader || mayReadAll(principal));
}

/** The error for a missing conversation, and for a conversation that the caller may not read. */
export function noConversation(id: string): DramatisError {
  return notFound(`There is no conversation "${id}".`);
}

/** The error of an actor without a conversation. An actor's name needs a tenant to have a conversation. */
export function noConversationAt(name: string): DramatisError {
  const split = name.lastIndexOf(":");
  if (split > 0) return noConversation(name.slice(split + 1));
  return notFound(
    `There is no conversation "${name}": an actor's name has its tenant before the id. Address it by \`<tenant>:<id>\`.`,
  );
}

/** As `checkReader`. Also throws `FORBIDDEN` unless the principal is a participant or an admin, and in the conversation of a call (ACCESS-2). */
function checkSpeaker(record: ConversationIdentity, principal: Principal): void {
  checkReader(record, principal);
  if (record.call !== undefined) {
    const { caller } = record.call;
    const who = "runId" in caller ? `run "${caller.runId}"` : `agent "${caller.agentId}"`;
    throw forbidden(
      `The ${who} opened this conversation by a call, so only that ${who.split(" ")[0]} can write here. You can stop the conversation, and answer its requests for approval.`,
    );
  }
  if (isParticipant(record, principal) || principal.roles.includes("admin")) return;
  throw forbidden("Only participants of a conversation may write to it.");
}

/** Throws as `checkReader`, and `FORBIDDEN` unless the principal may delete the conversation: a speaker, or an operator (DELETE-1). */
export function checkKeeper(record: ConversationIdentity, principal: Principal): void {
  checkReader(record, principal);
  if (!mayReadAll(principal)) checkSpeaker(record, principal);
}

/** Throws `FORBIDDEN` unless the principal is an operator. */
export function checkOperator(principal: Principal): void {
  if (!mayReadAll(principal)) throw forbidden("Only operators may read the requests to models.");
}

function isParticipant(record: ConversationIdentity, { subject }: Principal): boolean {
  return record.participants.some(({ type, id }) => type === "user" && id === subject);
}
