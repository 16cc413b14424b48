/** `/api/dead-letters`: what could not be delivered between the tenant's actors, for operators. */
import { z } from "zod";
import { requireOperator } from "../../agents/base/mailbox/api.ts";
import { DramatisError, unwrap } from "../../shared/errors.ts";
import { isOperationId } from "../../shared/identifiers.ts";
import type { HttpRoutes } from "../base/context.ts";
import { pageOptions, pageSchema } from "../base/query.ts";
import { json, page, refuseOtherMethods } from "../base/respond.ts";
import type { ApiOperation } from "../openapi/operation.ts";
import { ids } from "../openapi/scalars.ts";
import { deadLetter, listOf } from "../openapi/views.ts";

const PATH = "/api/dead-letters";
const REDELIVER_PATH = `${PATH}/:id/redeliver` as const;

export const deadLetterOperations: readonly ApiOperation[] = [
  {
    id: "listDeadLetters",
    method: "get",
    path: PATH,
    tag: "delivery",
    summary: "List what could not be delivered",
    description: "Bodies are shown without secrets, and not at all where they are longer than 16 KiB.",
    query: pageSchema,
    answers: [{ status: 200, description: "One page.", body: listOf("deadLetters", deadLetter) }],
    errors: ["INVALID_INPUT", "FORBIDDEN"],
  },
  {
    id: "redeliver",
    method: "post",
    path: REDELIVER_PATH,
    tag: "delivery",
    summary: "Deliver a dead letter again",
    description:
      "Under its old operation id, so it cannot act twice. Possible for 30 days after it was sent.",
    params: z.object({ id: ids.deadLetter }),
    answers: [
      { status: 202, description: "It is on its way.", body: z.strictObject({ id: ids.deadLetter }) },
    ],
    errors: ["NOT_FOUND", "FORBIDDEN", "CONFLICT", "QUEUE_OVERFLOW"],
  },
];

export function deadLetterRoutes(app: HttpRoutes): void {
  app.get(PATH, async ({ req, var: { principal, deadLetters } }) => {
    requireOperator(principal);
    const options = pageOptions(req.query());
    if (options.cursor !== undefined && !isOperationId(options.cursor)) {
      throw new DramatisError("INVALID_INPUT", "This is not a cursor of this list.", {
        errors: [{ path: "/cursor", message: "Must be the `nextCursor` of an answer." }],
      });
    }
    return page("deadLetters", await deadLetters().list(principal.tenant, options));
  });
  refuseOtherMethods(app, PATH, ["GET"]);

  app.post(REDELIVER_PATH, async ({ req, var: { principal, actors, deadLetters } }) => {
    requireOperator(principal);
    const id = req.param("id");
    const letter = isOperationId(id) ? await deadLetters().find(principal.tenant, id) : null;
    if (letter === null) throw new DramatisError("NOT_FOUND", `There is no dead letter "${id}".`);
    const sender = await actors.mailbox(letter.from);
    unwrap(await sender.redeliver(principal, letter.id));
    return json({ id: letter.id }, 202);
  });
  refuseOtherMethods(app, REDELIVER_PATH, ["POST"]);
}
