/**
 * Creation of the agents that every runtime has. The first request that needs agents creates them, so a runtime whose
 * `/health` is never called has them too.
 */
import type { Context, Next } from "hono";
import type { HttpEnv } from "./context.ts";

/**
 * Returns `action` limited to one success per environment. Concurrent first requests each run the action: on Workers a
 * promise ends with the request that created it, so requests cannot share one.
 */
export function untilDone<Env extends object>(
  action: (env: Env) => Promise<void>,
): (env: Env) => Promise<void> {
  const done = new WeakSet<Env>();
  return async (env) => {
    if (done.has(env)) return;
    await action(env);
    done.add(env);
  };
}

/** Seeds before the handler runs. A failure is logged and reported by `/health`; the request goes on. */
export async function seeded(context: Context<HttpEnv>, next: Next): Promise<void> {
  try {
    await context.var.seed();
  } catch (error) {
    console.error("The first agents could not be created:", error);
  }
  await next();
}
