/** `/api/operations`: takes the results of deferred operations. The handle in the path replaces authentication. */
import { z } from "zod";
import { completeOperationAt, unknownHandle } from "../../protocol/complete-operation.ts";
import { completedOperation } from "../../protocol/conversation-schemas.ts";
import { readHandle } from "../../protocol/operation-handle.ts";
import { json } from "../base/respond.ts";
import { ok } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { resultSchema } from "./turns.ts";

export const DEFERRED = "/api/operations/:handle/result";

const params = z.object({
  handle: z.string().meta({ description: "The handle of the operation.", example: "WzEsI….dGhl…" }),
});

export const deferredRoutes: readonly Route[] = [
  route({
    id: "completeOperation",
    method: "post",
    path: DEFERRED,
    tag: "turns",
    summary: "Complete a deferred operation",
    description:
      "The handle comes from `ctx.defer()` in the tool. It is the only credential. Give `result` or `error`. Repeating the same result returns the same answer. A different result is a conflict. A result after the operation expired or stopped is also a conflict.",
    open: true,
    params,
    body: resultSchema.meta({ example: { result: { paid: true } } }),
    answers: ok("The operation has this result.", completedOperation),
    errors: ["CONFLICT", "RATE_LIMITED"],
    permit: (_, { handle = "" }) => claimOf(handle),
    handle: async ({ params: { handle }, body }, { actors }) => {
      const { tenant, conversationId } = claimOf(handle);
      const conversation = await actors.conversation(tenant, conversationId);
      return json(await completeOperationAt(conversation, handle, body));
    },
  }),
];

/** Returns the claim of a handle. Throws `NOT_FOUND` if the text is not a handle. */
function claimOf(handle: string): { tenant: string; conversationId: string } {
  const read = readHandle(handle);
  if (read === null) throw unknownHandle();
  return read.claim;
}

/** Returns a path without the handle in it, for the log. */
export function withoutHandle(path: string): string {
  return path.replace(/^(\/api\/operations\/)[^/]*/, "$1…");
}
