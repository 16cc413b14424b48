/** The HTTP entrances of a runtime, put together. Everything they need comes in as ports. */
import { Hono } from "hono";
import type { DeadLetterDirectory } from "../directory/dead-letters.ts";
import type { Directory } from "../directory/directory.ts";
import type { ActorDirectory } from "../ports/actor-directory.ts";
import { agentRoutes } from "./agents.ts";
import type { Authorize } from "./authorize.ts";
import type { HttpEnv } from "./context.ts";
import { conversationRoutes } from "./conversations.ts";
import { deadLetterRoutes } from "./dead-letters.ts";
import { eventRoutes } from "./events.ts";
import { healthRoutes } from "./health.ts";
import { problemOf } from "./problem.ts";
import { notFound, refuseOtherMethods } from "./respond.ts";
import { untilDone } from "./seeding.ts";
import { socketRoutes } from "./sockets.ts";
import { turnRoutes } from "./turns.ts";

/** The ports, each made from the environment of a request; making one must be cheap. */
export interface HttpDependencies<Env extends object> {
  authorize: Authorize<Env>;
  actors(env: Env): ActorDirectory;
  /** Asked only by what lists; throws `UNAVAILABLE` where there is none. */
  directory(env: Env): Directory;
  /** As `directory`. */
  deadLetters(env: Env): DeadLetterDirectory;
  /** Creates what every fresh runtime has. Doing it twice is doing it once. */
  seed(env: Env): Promise<void>;
}

/** What a Worker's `fetch` handler calls. */
export interface HttpApp<Env extends object> {
  fetch(request: Request, env: Env, context?: ExecutionContext): Promise<Response>;
}

export function createHttpApp<Env extends object>(dependencies: HttpDependencies<Env>): HttpApp<Env> {
  const seededOf = untilDone<Env>(dependencies.seed);
  const app = new Hono<HttpEnv>();

  app.onError((error, { req }) => problemOf(error, `${req.method} ${req.path}`));
  app.notFound(notFound);
  app.use(async (context, next) => {
    // SAFETY: `fetch` below is the only way in, and passes an `Env`.
    const env = context.env as Env;
    context.set("actors", dependencies.actors(env));
    context.set("directory", () => dependencies.directory(env));
    context.set("deadLetters", () => dependencies.deadLetters(env));
    context.set("seed", () => seededOf(env));
    await next();
  });
  healthRoutes(app);
  app.use(async (context, next) => {
    // SAFETY: as above.
    const answer = await dependencies.authorize(context.req.raw, context.env as Env);
    if (answer instanceof Response) return answer;
    context.set("principal", answer);
    await next();
  });
  refuseOtherMethods(app, "/health", ["GET"]);
  agentRoutes(app);
  conversationRoutes(app);
  turnRoutes(app);
  eventRoutes(app);
  deadLetterRoutes(app);
  socketRoutes(app);

  return { fetch: async (request, env, context) => app.fetch(request, env, context) };
}
