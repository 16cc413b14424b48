/**
 * The composition root: an application's libraries and policies in, its Worker out. The only place that knows every
 * part; everything else gets what it needs as a port.
 */

import type { LanguageModelV4 } from "@ai-sdk/provider";
import { atBaseUrl, defaultModelProfile, type ModelEnvironment } from "./adapters/default-profile.ts";
import { adapterFor } from "./adapters/formats/lookup.ts";
import { createModelGateway, secretsOf } from "./adapters/gateway/gateway.ts";
import { mayReceiveKey, type TrustedHost, trustedHosts } from "./adapters/gateway/trusted-hosts.ts";
import { guardGateway } from "./adapters/resilience/guarded-gateway.ts";
import { type HostGuardOptions, HostGuards } from "./adapters/resilience/host-guards.ts";
import type { Interceptor } from "./adapters/resilience/interceptors.ts";
import type { MetricsSink } from "./adapters/resilience/telemetry.ts";
import { createAgentClass } from "./agents/agent/agent.ts";
import { durableActors } from "./agents/base/lookup/durable-actors.ts";
import { createConversationClass } from "./agents/conversation/conversation.ts";
import { type ExecutorService, serviceExecutor } from "./agents/executor/client.ts";
import { createExecutorClass } from "./agents/executor/executor.ts";
import { AttachmentStore } from "./attachments/attachment-store.ts";
import { D1Definitions } from "./d1/d1-definitions.ts";
import { D1Directory } from "./d1/d1-directory.ts";
import { D1DeadLetters, type DeadLetterDirectory } from "./d1/dead-letters.ts";
import type { Directory } from "./d1/directory.ts";
import { createHttpApp, type HttpApp } from "./http/app.ts";
import { type Authorize, defaultAuthorize, type LocalEnv } from "./http/auth/authorize.ts";
import type { CorsOptions } from "./http/auth/cors.ts";
import { checkJwtConfiguration, isJwtConfigured, type JwtEnv } from "./http/auth/jwt.ts";
import { completeLimits, type Limits } from "./http/base/limits.ts";
import type { Library } from "./library/define.ts";
import { CODE_TENANT } from "./library/definition-source.ts";
import { DeployedCode } from "./library/deployed-code.ts";
import { Registry } from "./library/registry.ts";
import type { ModelGateway } from "./model/gateway.ts";
import type { ModelProfile } from "./model/profile.ts";
import { allowAll, type Gate } from "./policy/gate.ts";
import { systemClock, systemIds } from "./ports/system.ts";
import { R2ObjectStore } from "./ports/workers/r2-object-store.ts";
import type { CreateAgent } from "./protocol/agent-api.ts";
import { defined } from "./shared/defined.ts";
import { DramatisError, type Result } from "./shared/errors.ts";
import type { Principal } from "./shared/principal.ts";

/** The bindings and variables of a Dramatis Worker. Bindings are named as their classes. */
export interface DramatisEnv extends ModelEnvironment, LocalEnv, JwtEnv {
  Conversation: DurableObjectNamespace;
  Agent: DurableObjectNamespace;
  Executor: ExecutorService;
  /** The directory and the registry; without it everything works but lists and libraries by API. */
  DB?: D1Database;
  /** Attachments; without it what users say is text. */
  BUCKET?: R2Bucket;
  /** Workers AI. */
  AI?: Ai;
  /** Counts the requests of each principal; without it every isolate counts on its own. */
  RATE_LIMITER?: RateLimit;
}

/** What an application is made of. */
export interface DramatisOptions {
  libraries: Library[];
  /**
   * Who may enter; absent = tokens where AUTH_SECRET or AUTH_JWKS_URL is set, else a local administrator under
   * `npm start`, nobody elsewhere.
   */
  authorize?: Authorize<DramatisEnv>;
  models?: {
    /** The profile of personas that name none; absent = decided by the environment. */
    default?: ModelProfile;
    /** Reaches the models; absent = the built-in providers. */
    gateway?: (env: DramatisEnv) => ModelGateway;
    /** The AI SDK's models by their ids, for profiles of the provider `ai-sdk`; `undefined` for an unknown id. */
    languageModels?: (modelId: string, env: DramatisEnv) => LanguageModelV4 | undefined;
    /**
     * Hosts that may get keys, and to which model profiles by API may point, beside the providers' own, those of `*_BASE_URL` and those of profiles in the libraries:
     * `host`, `host:port`, or with `http://` before it where it is not HTTPS.
     */
    allowedHosts?: string[];
    /**
     * Names of variables whose keys model profiles by API may name, beside those that providers have by default and those
     * of profiles in the libraries. The like is read from `DRAMATIS_MODEL_SECRETS`.
     */
    allowedSecrets?: string[];
    /** What stands between the actors of an isolate and the hosts of models, and around every call. */
    resilience?: HostGuardOptions & {
      interceptors?: readonly Interceptor[];
      /** Is told of every model call of a turn once, when it is over; what it throws is logged. */
      metrics?: MetricsSink;
    };
  };
  /** How much a caller may do; absent = the defaults of `Limits`. */
  limits?: Limits;
  /** Origins whose pages may use the API; absent = the server's own only. */
  cors?: CorsOptions;
  /** Decides before every tool call; absent = all are allowed. */
  gate?: Gate;
  /** Agents that every runtime has from its first request on, in the tenant `local` unless they say otherwise. */
  agents?: (CreateAgent & { tenant?: string })[];
}

/**
 * The Worker of an application. Export its classes under their own names, and its handler as the default.
 *
 * @example
 * const app = dramatis({ libraries: [library] });
 * export const { Conversation, Agent, Executor } = app;
 * export default app.handler;
 */
export function dramatis(options: DramatisOptions) {
  const code = new DeployedCode(options.libraries);
  const registry = ({ DB }: DramatisEnv, tenant: string) =>
    DB === undefined
      ? new Registry(code)
      : new Registry(code, {
          deployed: new D1Definitions(DB, CODE_TENANT),
          authored: new D1Definitions(DB, tenant),
        });
  const directory = (env: DramatisEnv): Directory | null =>
    env.DB === undefined ? null : new D1Directory(env.DB);
  const limits = completeLimits(options.limits);
  const trusted = (env: DramatisEnv) => hostsOf(options, env);
  const { interceptors = [], metrics, ...guardOptions } = options.models?.resilience ?? {};
  const guards = new HostGuards(systemClock, guardOptions);
  const guarded = (gateway: ModelGateway) => guardGateway(gateway, { guards, interceptors, ids: systemIds });
  const deadLetters = (env: DramatisEnv): DeadLetterDirectory | null =>
    env.DB === undefined ? null : new D1DeadLetters(env.DB);
  const attachments = (env: DramatisEnv): AttachmentStore | null =>
    env.BUCKET === undefined ? null : new AttachmentStore(new R2ObjectStore(env.BUCKET));
  const http = createHttpApp<DramatisEnv>({
    authorize: options.authorize ?? defaultAuthorize,
    actors: durableActors,
    directory: (env) => directory(env) ?? missingBinding("Lists", "D1 binding `DB`"),
    deadLetters: (env) => deadLetters(env) ?? missingBinding("Lists", "D1 binding `DB`"),
    attachments: (env) => attachments(env) ?? missingBinding("Attachments", "R2 binding `BUCKET`"),
    libraries: (env, tenant) => ({
      registry: registry(env, tenant),
      tools: code,
      mayReceiveKey: (profile) => mayReceiveKey(profile, trusted(env)),
    }),
    async seed(env) {
      if (options.authorize === undefined && isJwtConfigured(env)) checkJwtConfiguration(env);
      trusted(env);
      await checkExecutor(env);
      await seed(env, options.agents ?? []);
    },
    limits,
    rateLimiter: (env) => env.RATE_LIMITER,
    ...defined({ cors: options.cors }),
  });
  return {
    Conversation: createConversationClass<DramatisEnv & Cloudflare.Env>({
      gateway: (env) => guarded(options.models?.gateway?.(env) ?? builtInGateway(env, options, trusted)),
      executor: (env) => serviceExecutor(env.Executor),
      actors: durableActors,
      directory,
      deadLetters,
      attachments,
      adapters: adapterFor,
      gate: options.gate ?? allowAll,
      ...defined({ metrics }),
      clientToolTimeoutMs: limits.clientToolMs,
      ...(limits.turns === false ? {} : { turnLimit: limits.turns }),
    }),
    Agent: createAgentClass<DramatisEnv & Cloudflare.Env>({
      registry,
      defaultProfile: (env) => options.models?.default ?? defaultModelProfile(env, env.AI !== undefined),
      completeProfile: (env, profile) => atBaseUrl(profile, env),
      directory,
      deadLetters,
    }),
    Executor: createExecutorClass(code, systemClock),
    handler: { fetch: http.fetch } satisfies HttpApp<DramatisEnv>,
  };
}

/** Where which keys may go. Throws `INVALID_INPUT` for a host that is none, and for a name that is none of a key. */
function hostsOf({ libraries, models = {} }: DramatisOptions, env: DramatisEnv): TrustedHost[] {
  const { default: fallback, allowedHosts, allowedSecrets } = models;
  const profiles = libraries.flatMap(({ modelProfiles }) =>
    modelProfiles.map(({ definition }) => definition),
  );
  return trustedHosts({
    env,
    profiles: fallback === undefined ? profiles : [...profiles, fallback],
    ...defined({ allowedHosts, allowedSecrets }),
  });
}

/** Made anew for each call: a host that is none then fails the call, with what to change, and not the actor. */
function builtInGateway(
  env: DramatisEnv,
  { models: { languageModels } = {} }: DramatisOptions,
  trusted: (env: DramatisEnv) => readonly TrustedHost[],
): ModelGateway {
  const ports = {
    secret: secretsOf(env),
    fetch: (input: string, init: RequestInit) => fetch(input, init),
    clock: systemClock,
    ...defined({ ai: env.AI }),
    ...(languageModels === undefined
      ? {}
      : { languageModel: (modelId: string) => languageModels(modelId, env) }),
  };
  return {
    stream: (request, signal) =>
      createModelGateway({ ...ports, trustedHosts: trusted(env) }).stream(request, signal),
  };
}

/** Throws `UNAVAILABLE`, naming what to configure, unless tools can be run: an empty batch must come back. */
async function checkExecutor({ Executor }: Partial<DramatisEnv>): Promise<void> {
  const refuse = (what: string, cause?: unknown) => {
    const message = `Tools cannot run: ${what}`;
    return new DramatisError("UNAVAILABLE", message, cause === undefined ? {} : { cause });
  };
  if (Executor === undefined) {
    throw refuse(
      "add the service binding `Executor`, whose `service` is this Worker's own name and `entrypoint` is `Executor`.",
    );
  }
  const probe = new AbortController();
  try {
    const reports = await Executor.run([], probe.signal);
    await reports.cancel();
  } catch (cause) {
    throw refuse(
      "the service binding `Executor` does not answer. Its `service` must be this Worker's own name, its `entrypoint` `Executor`, and the compatibility flag `enable_abortsignal_rpc` must be set.",
      cause,
    );
  } finally {
    probe.abort();
  }
}

/** Creates the agents of `options.agents` that are not there. */
async function seed(env: DramatisEnv, agents: (CreateAgent & { tenant?: string })[]): Promise<void> {
  for (const { tenant = "local", ...agent } of agents) {
    const principal: Principal = { subject: "system", tenant, roles: ["admin"] };
    const actor = await durableActors(env).agent(tenant, agent.id);
    const created: Result<unknown> = await actor.create(principal, agent);
    if (created.ok || created.error.code === "CONFLICT") continue;
    throw new DramatisError(
      "UNAVAILABLE",
      `The agent "${agent.id}" could not be created: ${created.error.message}`,
    );
  }
}

function missingBinding(feature: string, binding: string): never {
  throw new DramatisError("UNAVAILABLE", `${feature} need the ${binding}; add it to the configuration.`);
}
