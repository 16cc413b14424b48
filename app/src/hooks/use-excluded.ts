/** Tells whether the rule of a request for approval, or of a gate, excludes the user of the page. */
import { useEffect, useState } from "react";
import { type AnsweredBy, mayAnswer } from "../../../src/client/index.ts";
import { client } from "../client.ts";

let me: ReturnType<typeof client.me> | undefined;

/** Returns `false` until the page knows its user. Who sees a request here may read its conversation or its run. */
export function useExcluded({ rule, requester }: AnsweredBy): boolean {
  const [user, setUser] = useState<Awaited<typeof me>>(undefined);
  const hasRule = rule !== undefined;
  useEffect(() => {
    if (!hasRule) return;
    me ??= client.me();
    // The server refuses the answer of an excluded user all the same.
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
