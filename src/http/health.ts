/** `/health`: whether the runtime is ready. The only route that asks nobody who they are. */
import { DramatisError } from "../shared/errors.ts";
import { VERSION } from "../version.ts";
import type { HttpRoutes } from "./context.ts";
import { problem } from "./problem.ts";
import { json } from "./respond.ts";

export function healthRoutes(app: HttpRoutes): void {
  app.get("/health", async ({ var: { seed } }) => {
    try {
      await seed();
      return json({ status: "ok", version: VERSION });
    } catch (error) {
      console.error("The runtime is not ready:", error);
      const reason =
        error instanceof DramatisError ? error.message : "Its first agents could not be created.";
      return problem("UNAVAILABLE", `The runtime is not ready. ${reason}`);
    }
  });
}
