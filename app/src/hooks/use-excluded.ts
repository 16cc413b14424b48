/** Reports whether the rule of a request for approval, or of a gate, excludes the user of the page. */
import { type AnsweredBy, mayAnswer } from "../../../src/client/index.ts";
import { useSession } from "../session.ts";

/** Returns `false` if the user is unknown: the server still refuses the answer. A user who sees a request can read its conversation or its run. */
export function useExcluded({ rule, requester }: AnsweredBy): boolean {
  const { reader } = useSession();
  if (reader === undefined || rule === undefined) return false;
  return !mayAnswer({ rule, ...(requester !== undefined && { requester }) }, reader, true);
}
