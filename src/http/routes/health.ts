/** `/health`: reports whether the runtime is ready, and its missing parts. Needs no authentication. */
import { z } from "zod";
import { defined } from "../../shared/defined.ts";
import { VERSION } from "../../shared/version.ts";
import { json } from "../base/respond.ts";
import { ready } from "../base/seeding.ts";
import { ok } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";

export const healthRoutes: readonly Route[] = [
  route({
    id: "getHealth",
    method: "get",
    path: "/health",
    tag: "runtime",
    summary: "Check whether the runtime is ready",
    description:
      "Needs no authentication. `missing` lists optional parts that are absent or do not work, each with the fix. `signIn` has the addresses of the application's login. `model` is present if no language model is connected: the offline model answers agents without a model profile.",
    open: true,
    answers: ok(
      "The declared agents exist, and tools can run.",
      z.strictObject({
        status: z.literal("ok"),
        version: z.string(),
        missing: z.array(z.strictObject({ name: z.string(), message: z.string() })),
        model: z.literal("offline").optional(),
        signIn: z
          .strictObject({ page: z.string(), token: z.string().optional(), signOut: z.string().optional() })
          .optional(),
      }),
    ),
    handle: async (_, { seed, missing, model, signIn }) => {
      await ready(seed);
      return json({
        status: "ok",
        version: VERSION,
        missing: missing(),
        ...defined({ model: model(), signIn }),
      });
    },
  }),
];
