/** `/api/lists/database`: the D1 database with the lists of the tenant, and its move to another database. */
import { checkMayMove, checkMayReadPlace, listsPlace, moveListsSchema } from "../../protocol/lists-place.ts";
import { json } from "../base/respond.ts";
import { ok } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";

const PATH = "/api/lists/database";

export const listRoutes: readonly Route[] = [
  route({
    id: "getListsDatabase",
    method: "get",
    path: PATH,
    tag: "runtime",
    summary: "Read which database has the lists",
    description: "The lists of the tenant are in one of the D1 databases of the Worker.",
    answers: ok("The database, and the move that is under way.", listsPlace),
    errors: ["FORBIDDEN"],
    permit: ({ principal }) => checkMayReadPlace(principal),
    handle: async (_, { principal, lists }) => json(await lists().read(principal.tenant)),
  }),
  route({
    id: "moveLists",
    method: "put",
    path: PATH,
    tag: "runtime",
    summary: "Move the lists to another database",
    description:
      "Moves the lists of the tenant for a few seconds. Repeat the request until the answer has no `continueInMs`. " +
      "An interrupted move continues with the next request. During the move, lists do not change.",
    body: moveListsSchema,
    answers: ok("The database, and the rest of the move.", listsPlace),
    errors: ["FORBIDDEN", "CONFLICT"],
    permit: ({ principal }) => checkMayMove(principal),
    handle: async ({ body }, { principal, lists }) =>
      json(await lists().move(principal.tenant, body.database)),
  }),
];
