/** `/health`: reports whether the runtime is ready, and its missing parts. Needs no authentication. */

import { z } from "zod";
import { VERSION } from "../../shared/version.ts";
import { json } from "../base/respond.ts";
import { ready } from "../base/seeding.ts";
import { ok } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";

export const healthRoutes: readonly Route[] = [
  route(
    {
      id: "getHealth",
      method: "get",
      path: "/health",
      tag: "runtime",
      summary: "Check whether the runtime is ready",
      description:
        "Needs no authentication. `missing` lists optional parts that are absent or do not work, each with the fix.",
      open: true,
      answers: ok(
        "The declared agents exist, and tools can run.",
        z.strictObject({
          status: z.literal("ok"),
          version: z.string(),
          missing: z.array(z.strictObject({ name: z.string(), message: z.string() })),
        }),
      ),
    },
    async (_, { seed, missing }) => {
      await ready(seed);
      return json({ status: "ok", version: VERSION, missing: missing() });
    },
  ),
];
