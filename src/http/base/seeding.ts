/**
 * The first use of a runtime: its checks, and the agents that code declares. The first request that needs agents runs
 * both, so they do not depend on `/health`.
 *
 * READY-1  A request that needs agents gets `UNAVAILABLE` with the reason while the runtime is not ready.
 */
import type { Context, Next } from "hono";
import { DramatisError, unavailable } from "../../shared/errors.ts";
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

/** Seeds before the handler runs. Throws as `ready`. */
export async function seeded(context: Context<HttpEnv>, next: Next): Promise<void> {
  await ready(context.var.seed);
  await next();
}

/** Seeds. Throws `UNAVAILABLE` with the reason if that fails, which is also logged. */
export async function ready(seed: () => Promise<void>): Promise<void> {
  try {
    await seed();
  } catch (cause) {
    console.error("The runtime is not ready:", cause);
    const reason = cause instanceof DramatisError ? cause.message : "Its agents could not be created.";
    throw unavailable(`The runtime is not ready. ${reason}`, { cause });
  }
}
