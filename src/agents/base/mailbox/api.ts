/** What every actor offers to operators about its dead letters, and who they are. */

import type { ActorAddress } from "../../../protocol/envelope.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { mayReadAll, type Principal } from "../../../shared/principal.ts";

/** Throws unless the principal may see and redeliver the dead letters of an actor at this address. */
export function checkOperator(principal: Principal, address: ActorAddress | null): void {
  if (address === null || address.tenant !== principal.tenant) {
    throw new DramatisError("NOT_FOUND", "There is no such actor.");
  }
  requireOperator(principal);
}

/** Throws `FORBIDDEN` unless the principal is an operator or administrator. */
export function requireOperator(principal: Principal): void {
  if (mayReadAll(principal)) return;
  throw new DramatisError(
    "FORBIDDEN",
    "Only operators and administrators may see and redeliver dead letters.",
  );
}
