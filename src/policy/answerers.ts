/** Decides who may answer a request for approval, or a gate. */
import { type AnsweredBy, mayAnswer, whoMayAnswer } from "../protocol/approval.ts";
import type { ApprovalRule } from "../protocol/approval-schema.ts";
import { DramatisError } from "../shared/errors.ts";
import type { Principal } from "../shared/principal.ts";

/** The place of a request, and the access of the principal to it. */
interface Place {
  tenant: string;
  /** The principal may read the conversation or the run. */
  isReader: boolean;
  /** Returns the error for people who must not learn that the place exists. */
  unknown(): DramatisError;
}

/**
 * Throws unless a person may answer: `PERMISSION_DENIED` for a reader whom the rule excludes, and the error of an unknown place for other
 * people. `asked` is absent for an unknown request.
 */
export function checkAnswerer(
  asked: AnsweredBy | undefined,
  principal: Principal,
  { tenant, isReader, unknown }: Place,
): void {
  if (principal.tenant === tenant && mayAnswer(asked ?? {}, principal, isReader)) return;
  throw isReader ? excluded(asked?.rule) : unknown();
}

/** Returns the refusal of a person whom a rule excludes. It names the rule. */
function excluded(rule: ApprovalRule = {}): DramatisError {
  return new DramatisError(
    "PERMISSION_DENIED",
    `You may not answer this request. ${whoMayAnswer(rule)} The rule is ${JSON.stringify(rule)}.`,
  );
}
