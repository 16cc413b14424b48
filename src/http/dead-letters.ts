/** `/api/dead-letters`: what could not be delivered between the tenant's actors, for operators. */
import { z } from "zod";
import { requireOperator } from "../agents/mailbox/api.ts";
import { deadLetterViewSchema } from "../agents/mailbox/dead-letter.ts";
import { isOperationId } from "../agents/mailbox/envelope.ts";
import { DramatisError, unwrap } from "../shared/errors.ts";
import type { HttpRoutes } from "./context.ts";
import { pageOptions } from "./query.ts";
import { json, page, refuseOtherMethods } from "./respond.ts";

const PATH = "/api/dead-letters";

/** What `GET /api/dead-letters` answers. */
export const deadLetterListSchema = z.object({
  deadLetters: z.array(deadLetterViewSchema),
  nextCursor: z.exactOptional(z.string()),
});

/** What `POST /api/dead-letters/:id/redeliver` answers. */
export const redeliveredSchema = z.object({ id: z.string() });

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

  app.post(`${PATH}/:id/redeliver`, async ({ req, var: { principal, actors, deadLetters } }) => {
    requireOperator(principal);
    const id = req.param("id");
    const letter = isOperationId(id) ? await deadLetters().find(principal.tenant, id) : null;
    if (letter === null) throw new DramatisError("NOT_FOUND", `There is no dead letter "${id}".`);
    const sender = await actors.mailbox(letter.from);
    unwrap(await sender.redeliver(principal, letter.id));
    return json({ id: letter.id }, 202);
  });
  refuseOtherMethods(app, `${PATH}/:id/redeliver`, ["POST"]);
}
