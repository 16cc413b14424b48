/** `/api/dead-letters`: messages between the tenant's actors that could not be delivered. For operators. */
import { z } from "zod";
import { deadLetter } from "../../protocol/conversation-schemas.ts";
import { requireOperator } from "../../protocol/mailbox-api.ts";
import { ids } from "../../protocol/scalars.ts";
import { notFound, unwrap } from "../../shared/errors.ts";
import { isOperationId } from "../../shared/identifiers.ts";
import { pageSchema } from "../base/query.ts";
import { json, page } from "../base/respond.ts";
import { onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";

const PATH = "/api/dead-letters";
const REDELIVER = `${PATH}/:id/redeliver` as const;

const letterPageSchema = pageSchema.refine(({ cursor }) => cursor === undefined || isOperationId(cursor), {
  path: ["cursor"],
  message: "Must be the `nextCursor` of an answer.",
});

export const deadLetterRoutes: readonly Route[] = [
  route({
    id: "listDeadLetters",
    method: "get",
    path: PATH,
    tag: "delivery",
    summary: "List dead letters",
    description: "Secrets are removed from bodies. A body longer than 16 KiB is omitted.",
    query: letterPageSchema,
    answers: onePage("deadLetters", deadLetter),
    errors: ["FORBIDDEN"],
    permit: ({ principal }) => requireOperator(principal),
    handle: async ({ query }, { principal, deadLetters }) =>
      page("deadLetters", await deadLetters().list(principal.tenant, query)),
  }),
  route({
    id: "redeliver",
    method: "post",
    path: REDELIVER,
    tag: "delivery",
    summary: "Deliver a dead letter again",
    description:
      "The letter keeps its operation id, so it cannot act twice. Possible for 30 days after it was sent.",
    params: z.object({ id: ids.deadLetter }),
    answers: [
      {
        status: 202,
        description: "The letter is on its way.",
        body: z.strictObject({ id: ids.deadLetter }),
      },
    ],
    errors: ["FORBIDDEN", "CONFLICT", "QUEUE_OVERFLOW"],
    permit: ({ principal }) => requireOperator(principal),
    handle: async ({ params: { id } }, { principal, actors, deadLetters }) => {
      const letter = await deadLetters().find(principal.tenant, id);
      if (letter === null) throw notFound(`There is no dead letter "${id}".`);
      const sender = await actors.mailbox(letter.from);
      unwrap(await sender.redeliver(principal, letter.id));
      return json({ id: letter.id }, 202);
    },
  }),
];
