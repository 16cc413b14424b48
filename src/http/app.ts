/**
 * The HTTP API: its middleware and its routes, in the order of a request.
 *
 * `auth/` authenticates requests, `base/http-limits.ts` sets the limits, `routes/turns.ts` starts turns.
 */
import { Hono } from "hono";
import { getPath } from "hono/utils/url";
import { systemClock } from "../ports/system.ts";
import type { ChannelMail } from "../protocol/channels.ts";
import { type Principal, usablePrincipal } from "../shared/principal.ts";
import { issuesText } from "../shared/validation.ts";
import { a2aErrors, withoutSlash } from "./a2a/errors.ts";
import type { Authorize } from "./auth/authorize.ts";
import { legibleRefusal } from "./auth/bearer.ts";
import { allowOrigins, type CorsOptions, guardUpgrades } from "./auth/cors.ts";
import type { HttpEnv, HttpRoutes, RequestPorts } from "./base/context.ts";
import { completeLimits, type Limits } from "./base/http-limits.ts";
import { problem, problemOf } from "./base/problem.ts";
import { unknownParameters } from "./base/query.ts";
import { type PlatformLimiter, RequestLimiter } from "./base/request-limiter.ts";
import { noOperation } from "./base/respond.ts";
import { withSecurityHeaders } from "./base/security-headers.ts";
import { seeded, untilDone } from "./base/seeding.ts";
import { senderOf } from "./base/sender.ts";
import { takeMail } from "./channels.ts";
import { addMetadata } from "./mcp/metadata.ts";
import type { McpServing } from "./mcp/options.ts";
import { addMcp } from "./mcp/route.ts";
import { openAiErrors } from "./openai/errors.ts";
import { isList } from "./openapi/operation.ts";
import { addRoutes } from "./openapi/route.ts";
import { AUTHENTICATED_ROUTES, OPERATIONS } from "./operations.ts";
import { channelRoutes } from "./routes/channels.ts";
import { DEFERRED, deferredRoutes, withoutHandle } from "./routes/deferred.ts";
import { healthRoutes } from "./routes/health.ts";
import { webhookRoutes } from "./routes/webhooks.ts";

export interface HttpPorts<Env extends object> {
  authorize: Authorize<Env>;
  /** Runs for every request, so it must be cheap. */
  requestPorts(env: Env): RequestPorts;
  /** Checks the runtime, and creates or changes the agents that code declares. Must be idempotent. */
  seed(env: Env): Promise<void>;
  limits?: Limits;
  /** Counts the requests of principals; absent = each isolate counts alone. */
  rateLimiter?(env: Env): PlatformLimiter | undefined;
  /** Absent = only pages of the server's own origin may use the API. */
  cors?: CorsOptions;
  mcp?: McpServing<Env>;
  issuers?(env: Env): readonly string[];
}

/** The `fetch` handler of a Worker. */
export interface HttpApp<Env extends object> {
  fetch(request: Request, env: Env, context?: ExecutionContext): Promise<Response>;
  email(mail: ChannelMail, env: Env): Promise<void>;
}

export function createHttpApp<Env extends object>(ports: HttpPorts<Env>): HttpApp<Env> {
  const seed = untilDone<Env>(ports.seed);
  const limiter = new RequestLimiter(completeLimits(ports.limits).requests, systemClock);
  const app = createRoutes({ ...ports, seed });
  return {
    fetch: async (request, env, context) => withSecurityHeaders(await app.fetch(request, env, context)),
    async email(mail, env) {
      await seed(env);
      const { actors, channels } = ports.requestPorts(env);
      const count = (principal: Principal) => limiter.count(principal, ports.rateLimiter?.(env));
      await takeMail({ actors, count }, channels(), mail);
    },
  };
}

/** The Hono application. Its `fetch` must be called with an `Env`. */
export function createRoutes<Env extends object>(ports: HttpPorts<Env>): HttpRoutes {
  const limits = completeLimits(ports.limits);
  const limiter = new RequestLimiter(limits.requests, systemClock);
  const app = new Hono<HttpEnv>({ getPath: (request) => withoutSlash(getPath(request)) });

  app.onError((error, { req }) => {
    const path = withoutHandle(new URL(req.url).pathname);
    return legibleRefusal(req.raw, problemOf(error, `${req.method} ${path}`));
  });
  app.notFound(noOperation);
  app.use(async (context, next) => {
    // SAFETY: the caller of `fetch` passes an `Env`.
    const env = context.env as Env;
    const variables = {
      ...ports.requestPorts(env),
      clock: systemClock,
      seed: () => ports.seed(env),
      maxBodyBytes: limits.bodyBytes,
      maxAttachmentBytes: limits.attachmentBytes,
    };
    for (const [name, value] of Object.entries(variables)) {
      // SAFETY: `entries` gives the keys of the object.
      context.set(name as keyof typeof variables, value);
    }
    await next();
  });
  if (ports.cors !== undefined) app.use(allowOrigins(ports.cors));
  addRoutes(app, healthRoutes);
  const countSender = (request: Request, env: unknown) =>
    // SAFETY: as above.
    limiter.count(senderOf(request), ports.rateLimiter?.(env as Env));
  app.post(DEFERRED, async ({ req, env }, next) => {
    await countSender(req.raw, env);
    await next();
  });
  addRoutes(app, deferredRoutes);
  webhookRoutes(app, countSender);
  channelRoutes(app, countSender, (principal, env) =>
    // SAFETY: as above.
    limiter.count(principal, ports.rateLimiter?.(env as Env)),
  );
  app.use("/v1/*", openAiErrors);
  app.use("/a2a/*", a2aErrors);
  // SAFETY: as above.
  addMetadata(app, (env) => ports.issuers?.(env as Env) ?? []);
  app.use(async (context, next) => {
    // SAFETY: as above.
    const env = context.env as Env;
    const answer = await ports.authorize(context.req.raw, env);
    if (answer instanceof Response) return legibleRefusal(context.req.raw, answer);
    const principal = usablePrincipal(answer);
    await limiter.count(principal, ports.rateLimiter?.(env));
    context.set("principal", principal);
    await next();
  });
  app.use(guardUpgrades(ports.cors ?? { origins: [] }));
  app.use("/api/agents/*", seeded);
  app.use("/api/memories/*", seeded);
  app.post("/api/conversations", seeded);
  app.post("/api/runs", seeded);
  app.post("/api/triggers", seeded);
  app.use("/v1/*", seeded);
  app.use("/agui/*", seeded);
  app.use("/a2a/*", seeded);
  app.use("/mcp", seeded);
  app.use("/api/projects/*", seeded);
  app.use("/git/*", seeded);
  refuseUnknownParameters(app);
  addRoutes(app, AUTHENTICATED_ROUTES);
  if (ports.mcp !== undefined) addMcp(app, ports.mcp);
  refuseOtherMethods(app);
  return app;
}

/** Refuses unknown query parameters of lists and searches (QUERY-3). Must come before the routes. */
function refuseUnknownParameters(app: HttpRoutes): void {
  for (const { path, query } of OPERATIONS.filter(isList)) {
    app.get(path, async ({ req }, next) => {
      const errors = unknownParameters(Object.keys(query?.shape ?? {}), Object.keys(req.queries()));
      return errors.length === 0 ? next() : problem("UNKNOWN_PARAMETER", issuesText(errors), { errors });
    });
  }
}

/** Answers the other methods of every known path. Must follow all routes. */
function refuseOtherMethods(app: HttpRoutes): void {
  for (const [path, operations] of Map.groupBy(OPERATIONS, ({ path }) => path)) {
    const methods = operations.map(({ method }) => method.toUpperCase()).sort();
    if (methods.includes("GET")) methods.push("HEAD");
    const allow = methods.join(", ");
    app.all(path, ({ req }) =>
      problem("METHOD_NOT_ALLOWED", `${req.method} is not allowed here. Use ${allow}.`, {
        headers: { allow },
      }),
    );
  }
}
