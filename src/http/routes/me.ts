/** `/api/me`: the principal of the request. */
import { z } from "zod";
import { ROLES } from "../../shared/roles.ts";
import { json } from "../base/respond.ts";
import { ok } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";

export const meRoutes: readonly Route[] = [
  route({
    id: "getMe",
    method: "get",
    path: "/api/me",
    tag: "runtime",
    summary: "Read who you are",
    description: "A client needs it to know which requests for approval you may answer.",
    answers: ok(
      "The subject, the tenant and the roles of the request.",
      z.strictObject({ subject: z.string(), tenant: z.string(), roles: z.array(z.enum(ROLES)) }),
    ),
    handle: (_, { principal: { subject, tenant, roles } }) =>
      json({ subject, tenant, roles: ROLES.filter((role) => roles.includes(role)) }),
  }),
];
