/** `/api/operations`: takes the results of deferred operations. The handle in the path replaces authentication. */

import { z } from "zod";
import { completeOperationAt, unknownHandle } from "../../protocol/complete-operation.ts";
import { completedOperation } from "../../protocol/conversation-schemas.ts";
import { readHandle } from "../../protocol/operation-handle.ts";
import type { ToolOutcome } from "../../protocol/requests.ts";
import { readBody } from "../base/body.ts";
import type { HttpRoutes } from "../base/context.ts";
import { json } from "../base/respond.ts";
import { type ApiOperation, BODY_ERRORS, ok } from "../openapi/operation.ts";
import { resultSchema } from "./turns.ts";

const PATH = "/api/operations/:handle/result" as const;

export const deferredOperations: readonly ApiOperation[] = [
  {
    id: "completeOperation",
    method: "post",
    path: PATH,
    tag: "turns",
    summary: "Complete a deferred operation",
    description:
      "The handle comes from `ctx.defer()` in the tool. It is the only credential. Give `result` or `error`. Repeating the same result returns the same answer. A different result is a conflict. A result after the operation expired or stopped is also a conflict.",
    open: true,
    params: z.object({
      handle: z.string().meta({ description: "The handle of the operation.", example: "WzEsI….dGhl…" }),
    }),
    body: resultSchema.meta({ example: { result: { paid: true } } }),
    answers: ok("The operation has this result.", completedOperation),
    errors: [...BODY_ERRORS, "NOT_FOUND", "CONFLICT", "RATE_LIMITED"],
  },
];

/** `count` counts a request of an address, and throws `RATE_LIMITED`. */
export function deferredRoutes(
  app: HttpRoutes,
  count: (request: Request, env: unknown) => Promise<void>,
): void {
  app.post(PATH, async (context) => {
    await count(context.req.raw, context.env);
    const handle = context.req.param("handle");
    const read = readHandle(handle);
    if (read === null) throw unknownHandle();
    // SAFETY: the schema accepts JSON only.
    const outcome = (await readBody(context, resultSchema)) as ToolOutcome;
    const { tenant, conversationId } = read.claim;
    const conversation = await context.var.actors.conversation(tenant, conversationId);
    return json(await completeOperationAt(conversation, handle, outcome));
  });
}

/** Returns a path without the handle in it, for the log. */
export function withoutHandle(path: string): string {
  return path.replace(/^(\/api\/operations\/)[^/]*/, "$1…");
}
