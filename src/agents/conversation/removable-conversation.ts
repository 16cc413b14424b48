/** The RPC methods that delete a conversation, the answers of its mailbox afterwards, and the removal of an actor without a conversation. */
import type { ConversationDataApi, ImportEnd, ImportPart } from "../../protocol/data-api.ts";
import type { Envelope } from "../../protocol/envelope.ts";
import type { ErasedCallApi } from "../../protocol/executor-api.ts";
import type { Answer, Attempt } from "../../protocol/mailbox-api.ts";
import { AGENT_INVITE } from "../../protocol/run-invitation.ts";
import { asDone, asResult, invalid, type Result } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";
import { noConversationAt } from "./inbound/access.ts";
import { GuardedSessionAgent } from "./inbound/session-guard.ts";
import type { ConversationContext } from "./wiring.ts";

export abstract class RemovableConversation<Env extends Cloudflare.Env>
  extends GuardedSessionAgent<Env>
  implements ConversationDataApi, ErasedCallApi
{
  protected abstract get context(): ConversationContext;

  async remove(principal: Principal): Promise<Result<null>> {
    return asDone(() => this.#existing().removal.remove(principal));
  }

  async removeAgent(principal: Principal, agentId: string): Promise<Result<null>> {
    return asDone(() => this.#existing().removal.removeAgent(agentId, principal));
  }

  async eraseEntry(principal: Principal, id: string): Promise<Result<null>> {
    return asDone(async () => {
      await this.#existing().erasing.erase(principal, id);
      this.context.queries.forget();
      this.context.readers.forget();
    });
  }

  async isErased(operationId: string): Promise<Result<boolean>> {
    return asResult(() => this.#existing().erasing.isErased(operationId));
  }

  async exportLines(principal: Principal): Promise<Result<ReadableStream<Uint8Array>>> {
    return asResult(() => this.#existing().backup.export(principal));
  }

  async importLines(principal: Principal, part: ImportPart): Promise<Result<ImportEnd | null>> {
    return asResult(() => {
      this.checkPlace();
      return this.context.backup.import(principal, part);
    });
  }

  async takeFork(part: ImportPart): Promise<Result<null>> {
    return asDone(() => {
      this.checkPlace();
      return this.context.backup.takeFork(part);
    });
  }

  /** Returns the parts of an existing conversation. Throws the same `NOT_FOUND` as for a principal without read access. */
  #existing(): ConversationContext {
    if (this.context.runtime.exists) return this.context;
    throw noConversationAt(this.name);
  }

  /** Returns the tenant and the id in the actor's name. Throws `INVALID_INPUT` for a name without a tenant. */
  protected actorAddress(): { tenant: string; conversationId: string } {
    const address = this.mailboxAddress;
    if (address !== null) return { tenant: address.tenant, conversationId: address.id };
    throw invalid("Address the conversation by `<tenant>:<id>`.");
  }

  /** Removes the storage of an actor without a conversation, because a handle can name any conversation (HANDLE-3). */
  protected removeEmpty(): Promise<void> {
    const { runtime, removal } = this.context;
    return this.destroyUnused(() => this.isRefused || runtime.exists || removal.isDeleted);
  }

  /** A deleted conversation takes results and drops them. A run that invites an agent to it gets `NOT_FOUND`. */
  override async receive(envelope: Envelope, attempt: Attempt): Promise<Answer> {
    if (this.context.removal.isKnownDeleted && envelope.type !== AGENT_INVITE)
      return { type: "done", result: null };
    return super.receive(envelope, attempt);
  }
}
