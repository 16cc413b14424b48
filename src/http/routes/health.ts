/** `/health`: reports whether the runtime is ready. The only route without authentication. */
import { z } from "zod";
import { DramatisError } from "../../shared/errors.ts";
import { VERSION } from "../../shared/version.ts";
import type { HttpRoutes } from "../base/context.ts";
import { problem } from "../base/problem.ts";
import { json } from "../base/respond.ts";
import { type ApiOperation, ok } from "../openapi/operation.ts";

export const healthOperations: readonly ApiOperation[] = [
  {
    id: "getHealth",
    method: "get",
    path: "/health",
    tag: "runtime",
    summary: "Check whether the runtime is ready",
    description: "The only request without authentication.",
    open: true,
    answers: ok(
      "The first agents exist, and tools can run.",
      z.strictObject({ status: z.literal("ok"), version: z.string() }),
    ),
  },
];

export function healthRoutes(app: HttpRoutes): void {
  app.get("/health", async ({ var: { seed } }) => {
    try {
      await seed();
      return json({ status: "ok", version: VERSION });
    } catch (error) {
      console.error("The runtime is not ready:", error);
      const reason =
        error instanceof DramatisError ? error.message : "The first agents could not be created.";
      return problem("UNAVAILABLE", `The runtime is not ready. ${reason}`);
    }
  });
}
