/** The RPC methods that delete a conversation, and the answer of its mailbox from then on. */

import type { Envelope } from "../../protocol/envelope.ts";
import type { ConversationKeepingApi } from "../../protocol/keeping-api.ts";
import type { Answer, Attempt } from "../../protocol/mailbox-api.ts";
import { AGENT_INVITE } from "../../protocol/run-invitation.ts";
import { asDone, type Result } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";
import { GuardedSessionAgent } from "./door/session-guard.ts";
import type { ConversationParts } from "./parts.ts";

export abstract class KeptConversation<Env extends Cloudflare.Env>
  extends GuardedSessionAgent<Env>
  implements ConversationKeepingApi
{
  protected abstract get parts(): ConversationParts;

  async remove(principal: Principal): Promise<Result<null>> {
    return asDone(() => this.parts.removal.remove(principal));
  }

  async removeAgent(principal: Principal, agentId: string): Promise<Result<null>> {
    return asDone(() => this.parts.removal.removeAgent(agentId, principal));
  }

  /** A deleted conversation takes results and drops them. A run that invites an agent to it gets `NOT_FOUND`. */
  override async receive(envelope: Envelope, attempt: Attempt): Promise<Answer> {
    if (!this.isRefused && this.parts.removal.isDeleted && envelope.type !== AGENT_INVITE)
      return { type: "done", result: null };
    return super.receive(envelope, attempt);
  }
}
