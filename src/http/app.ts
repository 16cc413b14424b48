/** The HTTP entrances of a runtime, put together. Everything they need comes in as ports. */
import { Hono } from "hono";
import type { AttachmentStore } from "../attachments/attachment-store.ts";
import type { DeadLetterDirectory } from "../d1/dead-letters.ts";
import type { Directory } from "../d1/directory.ts";
import type { LibraryPorts } from "../library/authoring.ts";
import { systemClock } from "../ports/system.ts";
import type { ActorLookup } from "../protocol/actor-lookup.ts";
import { usablePrincipal } from "../shared/principal.ts";
import { descriptionRoutes } from "./api-description.ts";
import type { Authorize } from "./auth/authorize.ts";
import { legibleRefusal } from "./auth/bearer.ts";
import { allowOrigins, type CorsOptions, guardUpgrades } from "./auth/cors.ts";
import type { HttpEnv, HttpRoutes } from "./base/context.ts";
import { completeLimits, type Limits } from "./base/limits.ts";
import { problemOf } from "./base/problem.ts";
import { HttpLimits, type PlatformLimiter } from "./base/rate-limits.ts";
import { notFound, refuseOtherMethods } from "./base/respond.ts";
import { chatCompletionRoutes } from "./openai/chat-completions.ts";
import { openAiErrors } from "./openai/errors.ts";
import { modelRoutes } from "./openai/models.ts";
import { responseRoutes } from "./openai/responses.ts";
import { OPERATIONS } from "./operations.ts";
import { agentRoutes } from "./routes/agents.ts";
import { attachmentRoutes } from "./routes/attachments.ts";
import { chatRoutes } from "./routes/chat.ts";
import { conversationRoutes } from "./routes/conversations.ts";
import { deadLetterRoutes } from "./routes/dead-letters.ts";
import { eventRoutes } from "./routes/events.ts";
import { healthRoutes } from "./routes/health.ts";
import { libraryRoutes } from "./routes/libraries.ts";
import { untilDone } from "./routes/seeding.ts";
import { socketRoutes } from "./routes/sockets.ts";
import { turnRoutes } from "./routes/turns.ts";

/** The ports, each made from the environment of a request; making one must be cheap. */
export interface HttpPorts<Env extends object> {
  authorize: Authorize<Env>;
  actors(env: Env): ActorLookup;
  /** Asked only by what lists; throws `UNAVAILABLE` where there is none. */
  directory(env: Env): Directory;
  /** As `directory`. */
  deadLetters(env: Env): DeadLetterDirectory;
  /** As `directory`, for what handles attachments. */
  attachments(env: Env): AttachmentStore;
  libraries(env: Env, tenant: string): LibraryPorts;
  /** Creates what every fresh runtime has. Doing it twice is doing it once. */
  seed(env: Env): Promise<void>;
  limits?: Limits;
  /** Counts the requests of principals; absent = the isolate counts on its own. */
  rateLimiter?(env: Env): PlatformLimiter | undefined;
  /** Absent = only pages of the server's own origin may use it. */
  cors?: CorsOptions;
}

/** What a Worker's `fetch` handler calls. */
export interface HttpApp<Env extends object> {
  fetch(request: Request, env: Env, context?: ExecutionContext): Promise<Response>;
}

export function createHttpApp<Env extends object>(dependencies: HttpPorts<Env>): HttpApp<Env> {
  const app = createRoutes(dependencies);
  return { fetch: async (request, env, context) => app.fetch(request, env, context) };
}

/** The routes themselves; `fetch` must be given an `Env`. */
export function createRoutes<Env extends object>(dependencies: HttpPorts<Env>): HttpRoutes {
  const seededOf = untilDone<Env>(dependencies.seed);
  const limits = completeLimits(dependencies.limits);
  const counts = new HttpLimits(limits, () => systemClock.now());
  const app = new Hono<HttpEnv>();

  app.onError((error, { req }) => problemOf(error, `${req.method} ${new URL(req.url).pathname}`));
  app.notFound(notFound);
  app.use(async (context, next) => {
    // SAFETY: whoever calls `fetch` passes an `Env`.
    const env = context.env as Env;
    context.set("clock", systemClock);
    context.set("actors", dependencies.actors(env));
    context.set("directory", () => dependencies.directory(env));
    context.set("deadLetters", () => dependencies.deadLetters(env));
    context.set("libraries", (tenant) => dependencies.libraries(env, tenant));
    context.set("seed", () => seededOf(env));
    context.set("attachments", () => dependencies.attachments(env));
    context.set("maxBodyBytes", limits.bodyBytes);
    context.set("maxAttachmentBytes", limits.attachmentBytes);
    await next();
  });
  if (dependencies.cors !== undefined) app.use(allowOrigins(dependencies.cors));
  healthRoutes(app);
  app.use("/v1/*", openAiErrors);
  app.use(async (context, next) => {
    // SAFETY: as above.
    const env = context.env as Env;
    const answer = await dependencies.authorize(context.req.raw, env);
    if (answer instanceof Response) return legibleRefusal(context.req.raw, answer);
    const principal = usablePrincipal(answer);
    await counts.countRequest(principal, dependencies.rateLimiter?.(env));
    context.set("principal", principal);
    await next();
  });
  app.use(guardUpgrades(dependencies.cors ?? { origins: [] }));
  refuseOtherMethods(app, "/health", ["GET"]);
  agentRoutes(app);
  libraryRoutes(app);
  conversationRoutes(app);
  attachmentRoutes(app);
  turnRoutes(app);
  eventRoutes(app);
  chatRoutes(app);
  modelRoutes(app);
  chatCompletionRoutes(app);
  responseRoutes(app);
  deadLetterRoutes(app);
  socketRoutes(app);
  descriptionRoutes(app, OPERATIONS);

  return app;
}
