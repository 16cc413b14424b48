/** The bindings of a Worker, and what an application says of itself. Types only. */
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { ModelEnvironment } from "./adapters/default-profile.ts";
import type { HostGuardOptions } from "./adapters/resilience/host-guards.ts";
import type { Interceptor } from "./adapters/resilience/interceptors.ts";
import type { MetricsSink } from "./adapters/resilience/telemetry.ts";
import type { LogEnvironment } from "./adapters/telemetry/log-lines.ts";
import type { TelemetryEnvironment } from "./adapters/telemetry/otlp-exporter.ts";
import type { MemoryEmbedding } from "./agents/agent/memory-embedder.ts";
import type { Authorize, LocalEnv } from "./http/auth/authorize.ts";
import type { CorsOptions } from "./http/auth/cors.ts";
import type { JwtEnv } from "./http/auth/jwt.ts";
import type { Limits } from "./http/base/http-limits.ts";
import type { Library } from "./library/define/define.ts";
import type { ModelGateway } from "./model/gateway.ts";
import type { ModelProfile } from "./model/profile.ts";
import type { SpanExporter } from "./model/span.ts";
import type { Gate } from "./policy/gate.ts";
import type { VectorIndex } from "./ports/vector-index.ts";
import type { TaskExecutor } from "./protocol/executor-api.ts";
import type { LocationPolicy } from "./protocol/location-policy.ts";
import type { Principal } from "./shared/principal.ts";
import type { FirstAgent } from "./startup.ts";

/**
 * The bindings and variables of a Dramatis Worker. Its classes need no bindings: they reach each other through its exports.
 * A declared binding with the name of a class takes precedence.
 */
export interface DramatisEnv
  extends ModelEnvironment,
    TelemetryEnvironment,
    LogEnvironment,
    LocalEnv,
    JwtEnv {
  Conversation?: DurableObjectNamespace;
  Agent?: DurableObjectNamespace;
  Coordinator?: DurableObjectNamespace;
  Trigger?: DurableObjectNamespace;
  Executor?: TaskExecutor;
  /** The directory and the registry. Without it there are no lists and no libraries by API. */
  DB?: D1Database;
  /** Attachments. Without it messages are text only. */
  BUCKET?: R2Bucket;
  /** Workers AI. */
  AI?: Ai;
  /** The static files. They contain the word vectors for memories; without them searches of memories go by words alone. */
  ASSETS?: Fetcher;
  /** The address at which others reach this Worker, for `url` of deferred operations. */
  DRAMATIS_URL?: string;
  /** Hosts that requests of tasks by API may reach, separated by commas. */
  DRAMATIS_HTTP_HOSTS?: string;
  /** Counts the requests of each principal. Without it each isolate counts alone. */
  RATE_LIMITER?: RateLimit;
}

/** The libraries and policies of an application. */
export interface DramatisOptions {
  libraries: Library[];
  /**
   * Authenticates requests. Default: tokens, if AUTH_SECRET or AUTH_JWKS_URL is set; otherwise a local administrator
   * under `npm start`, and nobody elsewhere.
   */
  authorize?: Authorize<DramatisEnv>;
  models?: {
    /** The profile of personas without one. Default: chosen by the environment. */
    default?: ModelProfile;
    /** Calls the models. Default: the built-in providers. */
    gateway?: (env: DramatisEnv) => ModelGateway;
    /** Returns a model of the AI SDK for profiles of the provider `ai-sdk`; `undefined` for an unknown id. */
    languageModels?: (modelId: string, env: DramatisEnv) => LanguageModelV4 | undefined;
    /**
     * Hosts that may receive keys, and that model profiles by API may name, besides those of the providers, of
     * `*_BASE_URL` and of profiles in the libraries. Write `host` or `host:port`, with `http://` for plain HTTP.
     */
    allowedHosts?: string[];
    /**
     * Variables with keys that model profiles by API may name, besides the providers' own and those of profiles in the
     * libraries. `DRAMATIS_MODEL_SECRETS` adds more.
     */
    allowedSecrets?: string[];
    /** Limits and retries for the hosts of models, per isolate, and hooks around every call. */
    resilience?: HostGuardOptions & {
      interceptors?: readonly Interceptor[];
      /** Receives every model call of a turn once, after its end. Its exceptions are logged. */
      metrics?: MetricsSink;
    };
  };
  tasks?: {
    /**
     * Hosts that requests of tasks by API may reach, as `host` or `host:port`; `*` for all that are not private. Default: none.
     * `DRAMATIS_HTTP_HOSTS` adds more. Tasks in code name their own.
     */
    allowedHosts?: string[];
    /**
     * The indexes of vectors that actions name.
     * @example vectors: (env: DramatisEnv & { DOCS: Vectorize }) => ({ docs: new VectorizeVectorIndex(env.DOCS) })
     */
    vectors?(env: DramatisEnv): Record<string, VectorIndex>;
  };
  memory?: {
    /**
     * Makes the vectors by which memories are found: `static`, the word vectors of the static files, `none`, or a model. Default: `static`.
     * Another one takes over when it has embedded all memories; until then searches go by the one before, if that was `static`.
     *
     * @example embedder: { profile: { provider: "workers-ai", modelId: "@cf/baai/bge-m3" }, dimensions: 1_024 }
     */
    embedder?: MemoryEmbedding;
    /**
     * A store of vectors, which finds the nearest memories of agents with more than 1 000. Its index needs the dimensions of the embedder, 100 for
     * `static`, and no other use. Default: none; agents compare all vectors themselves.
     *
     * @example vectors: (env: DramatisEnv & { MEMORIES: Vectorize }) => new VectorizeVectorIndex(env.MEMORIES)
     */
    vectors?(env: DramatisEnv): VectorIndex;
    /** Bytes of all indexes of memories that an isolate holds together. Default: 32 MiB. Isolates have 128 MB for everything. */
    indexBytes?: number;
  };
  triggers?: {
    /**
     * Reports whether the subject that a trigger acts as may still act in its tenant. Asked before each start; its principal has no
     * roles. Default: it may. Then triggers of a user who has left go on until somebody disables them.
     */
    mayAct?(principal: Principal, env: DramatisEnv): boolean | Promise<boolean>;
  };
  telemetry?: {
    /** Sends the spans of turns, model calls, tools and calls of agents. Default: to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names. */
    exporter?: (env: DramatisEnv) => SpanExporter | undefined;
  };
  /** Limits of callers. Default: those of `Limits`. */
  limits?: Limits;
  /** Origins whose pages may use the API. Default: the server's own. */
  cors?: CorsOptions;
  /** Decides before every tool call. Default: allows all. */
  gate?: Gate;
  /**
   * Agents that the code declares. The first request of an isolate creates those that do not exist, and changes those whose
   * declaration here has changed. New conversations use the new persona, existing ones keep theirs.
   */
  agents?: FirstAgent[];
  /**
   * Decides where the agents and conversations of a tenant may live. Default: in no jurisdiction, unless their request names one. What
   * is there stays where it is.
   *
   * @example location: (tenant) => (tenant === "acme" ? { jurisdiction: "eu", strict: true } : {})
   */
  location?: (tenant: string) => LocationPolicy;
}
