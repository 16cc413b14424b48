/** Reports whether the rule of a request for approval, or of a gate, excludes the user of the page. */
import { useEffect, useState } from "react";
import { type AnsweredBy, mayAnswer } from "../../../src/client/index.ts";
import { client } from "../client.ts";

let me: ReturnType<typeof client.me> | undefined;

/** Returns `false` until the page knows its user. A user who sees a request can read its conversation or its run. */
export function useExcluded({ rule, requester }: AnsweredBy): boolean {
  const [user, setUser] = useState<Awaited<typeof me>>(undefined);
  const hasRule = rule !== undefined;
  useEffect(() => {
    if (!hasRule) return;
    me ??= client.me();
    // If this fails, the server still refuses the answer of an excluded user.
    me.then(setUser, () => {
      me = undefined;
    });
  }, [hasRule]);
  return (
    user !== undefined &&
    hasRule &&
    !mayAnswer({ rule, ...(requester !== undefined && { requester }) }, user, true)
  );
}
