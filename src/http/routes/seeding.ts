/**
 * Sees to it that seeded agents are there for whoever asks for agents first, also where nothing ever asks for `/health`.
 */
import type { Context, Next } from "hono";
import type { HttpEnv } from "../base/context.ts";

/**
 * `action`, until it has succeeded once for an environment. Requests that come before that each run it: a promise
 * must not be shared, for it ends with the request that made it.
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

/** Seeds before the handler. A failure is the business of `/health`; here it is logged, and the request goes on. */
export async function seeded({ var: services }: Context<HttpEnv>, next: Next): Promise<void> {
  try {
    await services.seed();
  } catch (error) {
    console.error("The first agents could not be created:", error);
  }
  await next();
}
