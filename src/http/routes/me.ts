/** `/api/me`: the principal of the request. */
import { z } from "zod";
import { ROLES } from "../../shared/roles.ts";
import type { HttpRoutes } from "../base/context.ts";
import { json } from "../base/respond.ts";
import { type ApiOperation, ok } from "../openapi/operation.ts";

export const meOperations: readonly ApiOperation[] = [
  {
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
  },
];

export function meRoutes(app: HttpRoutes): void {
  app.get("/api/me", ({ var: { principal } }) => {
    const { subject, tenant, roles } = principal;
    return json({ subject, tenant, roles: ROLES.filter((role) => roles.includes(role)) });
  });
}
