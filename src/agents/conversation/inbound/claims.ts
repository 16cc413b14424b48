/**
 * Claims of clients' tool calls, so that only one of several tabs runs a call.
 *
 * CLAIM-1  A call is claimed by one connection at a time, while that connection is open, also over a hibernation. Its holder may
 *          claim it again.
 * CLAIM-2  Claims are not stored. A result needs no claim: the first valid result counts, from any sender.
 */
import type { Principal } from "../../../shared/principal.ts";
import type { Client } from "../../base/sockets/client.ts";
import type { ActorContext } from "../context.ts";
import type { ConversationAccess } from "./access.ts";
import { MAX_CLAIMS } from "./socket-limits.ts";

interface ClaimsContext extends Pick<ActorContext, "clients"> {
  access: Pick<ConversationAccess, "checkSpeaker">;
  /** `checkClientCall` throws `NOT_FOUND` for an unknown call, `CONFLICT` for a call that does not wait for a client's result. */
  runtime: { readonly results: { checkClientCall(operationId: string): void } };
}

export class Claims {
  constructor(private readonly context: ClaimsContext) {}

  /** Claims a call for a connection. Reports whether it may run the call. Throws as `checkSpeaker` and `checkClientCall` do. */
  claim(client: Client, principal: Principal, operationId: string): boolean {
    const { access, runtime, clients } = this.context;
    access.checkSpeaker(principal);
    runtime.results.checkClientCall(operationId);
    const isHeld = (other: Client) => other.id !== client.id && claimsOf(other).includes(operationId);
    if ([...clients()].some(isHeld)) return false;
    const { state } = client;
    const others = claimsOf(client).filter((id) => id !== operationId && this.#isOpen(id));
    if (state !== null) client.setState({ ...state, claims: [...others, operationId].slice(-MAX_CLAIMS) });
    return true;
  }

  #isOpen(operationId: string): boolean {
    try {
      this.context.runtime.results.checkClientCall(operationId);
      return true;
    } catch {
      return false;
    }
  }
}

function claimsOf({ state }: Client): readonly string[] {
  return state?.claims ?? [];
}
