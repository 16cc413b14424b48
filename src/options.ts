/** The bindings of a Worker, and the options of an application. Types only. */
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { ModelEnvironment } from "./adapters/default-profile.ts";
import type { HostGuardOptions } from "./adapters/resilience/host-guards.ts";
import type { Interceptor } from "./adapters/resilience/interceptors.ts";
import type { MetricsSink } from "./adapters/resilience/telemetry.ts";
import type { LogEnvironment } from "./adapters/telemetry/log-lines.ts";
import type { TelemetryEnvironment } from "./adapters/telemetry/otlp-exporter.ts";
import type { MemoryEmbedding } from "./agents/agent/memory-embedder.ts";
import type { DeclaredProject } from "./git/declared-projects.ts";
import type { Authorize, LocalEnv } from "./http/auth/authorize.ts";
import type { CorsOptions } from "./http/auth/cors.ts";
import type { JwtEnv } from "./http/auth/jwt.ts";
import type { Limits } from "./http/base/http-limits.ts";
import type { McpOptions } from "./http/mcp/options.ts";
import { collectAgents } from "./library/define/collect-agents.ts";
import type { Library } from "./library/define/define.ts";
import { DeployedCode } from "./library/registry/deployed-code.ts";
import type { AgentInCode, Workflow } from "./library/tasks/built.ts";
import type { McpServerOptions } from "./mcp/servers.ts";
import type { ModelGateway } from "./model/gateway.ts";
import type { ModelProfile } from "./model/profile.ts";
import type { SpanExporter } from "./model/span.ts";
import type { Gate } from "./policy/gate.ts";
import type { PolicyRule } from "./policy/policy.ts";
import type { RetentionPolicy } from "./policy/retention.ts";
import type { TitlePolicy } from "./policy/titles.ts";
import type { VectorIndex } from "./ports/vector-index.ts";
import type { ArtifactType } from "./protocol/artifacts.ts";
import type { ChannelOptions } from "./protocol/channels.ts";
import type { TaskExecutor } from "./protocol/executor-api.ts";
import type { LocationPolicy } from "./protocol/location-policy.ts";
import type { Principal } from "./shared/principal.ts";
import type { SignIn } from "./shared/sign-in.ts";
import { checkOptions } from "./shared/validation.ts";
import { checkAgents, type FirstAgent } from "./startup.ts";

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
  Channel?: DurableObjectNamespace;
  EventLog?: DurableObjectNamespace;
  Workspace?: DurableObjectNamespace;
  Executor?: TaskExecutor;
  /** Encrypts the secrets of projects. At least 32 bytes. */
  SECRETS_KEY?: string;
  /** The containers of `dramatis/container`. Without it commands run in the embedded shell. */
  SHELL?: DurableObjectNamespace;
  /**
   * The directory and the registry. Without it there are no lists and no libraries by API. Bindings `DB_1`, `DB_2` … can have the lists of
   * tenants that were moved there.
   */
  DB?: D1Database;
  /** Attachments. Without it messages are text only. */
  BUCKET?: R2Bucket;
  /** Workers AI. */
  AI?: Ai;
  /** The static files. They contain the word vectors for memories. Without them, searches of memories compare only words. */
  ASSETS?: Fetcher;
  /** The public address of this Worker, for `url` of deferred operations. */
  DRAMATIS_URL?: string;
  /** Hosts that requests of tasks by API may reach, separated by commas. */
  DRAMATIS_HTTP_HOSTS?: string;
  /** Hosts that get push notifications of A2A, separated by commas. */
  DRAMATIS_WEBHOOK_HOSTS?: string;
  /** Counts the requests of each principal. Without it, each isolate has its own count. */
  RATE_LIMITER?: RateLimit;
}

/** The agents, libraries and policies of an application. */
export interface DramatisOptions {
  /**
   * Agents in code, and agents that the code declares by the reference of a persona. The agents that they ask come along. The first request
   * of an isolate creates missing agents, and updates agents with a changed declaration. New conversations use the new persona. Existing
   * conversations keep their persona.
   */
  agents?: readonly (AgentInCode | FirstAgent)[];
  /**
   * Projects with their repositories. The first request of an isolate creates what is missing, and commits `files` to repositories without
   * commits. Needs the bindings `DB` and `BUCKET`.
   */
  projects?: readonly DeclaredProject[];
  /** Workflows that requests may start, as `app/<id>`. Workflows in the tools of agents come along. */
  workflows?: readonly Workflow[];
  /** Libraries with an id of their own, which other libraries and the API can refer to. */
  libraries?: readonly Library[];
  /**
   * The types of artifacts, by their paths. An artifact without a type is any text.
   *
   * @example artifactTypes: [{ id: "decision", pathPattern: "decisions/*.json", schema: { type: "object", required: ["title"] } }]
   */
  artifactTypes?: readonly ArtifactType[];
  /**
   * Authenticates requests. Default: tokens, if AUTH_SECRET or AUTH_JWKS_URL is set. Otherwise, requests under `npm start` come
   * from a local administrator, and all other requests are rejected.
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
     * More hosts that may receive keys, and that model profiles by API may name. The hosts of providers, of `*_BASE_URL` and of
     * profiles in the libraries are always allowed. Write `host` or `host:port`, with `http://` for plain HTTP.
     */
    allowedHosts?: string[];
    /**
     * More variables with keys that model profiles by API may name. The variables of providers and of profiles in the libraries
     * are always allowed. `DRAMATIS_MODEL_SECRETS` adds more.
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
     * Hosts that requests of tasks by API may reach, as `host` or `host:port`. `*` allows all public hosts. By default the list is
     * empty. `DRAMATIS_HTTP_HOSTS` adds more. Tasks in code name their own hosts.
     */
    allowedHosts?: string[];
    /**
     * The address of a server for DNS over HTTPS with answers in JSON. Each request of `http.request` to a public name asks it first, and a
     * name with a private address is refused. The server learns the names. By default names are not resolved.
     *
     * @example resolver: "https://cloudflare-dns.com/dns-query"
     */
    resolver?: string;
    /**
     * The indexes of vectors that actions name.
     * @example vectors: (env: DramatisEnv & { DOCS: Vectorize }) => ({ docs: new VectorizeVectorIndex(env.DOCS) })
     */
    vectors?(env: DramatisEnv): Record<string, VectorIndex>;
  };
  a2a?: {
    /**
     * Hosts that get push notifications, as `host` or `host:port`. `*` allows all public hosts. By default the list is empty, and the server
     * sends no push notifications. `DRAMATIS_WEBHOOK_HOSTS` adds more.
     */
    webhookHosts?: string[];
  };
  memory?: {
    /**
     * Makes the vectors of memories: `static` (the word vectors of the static files), `none`, or a model. Default: `static`. After a
     * change, the new embedder embeds all memories before searches use it. Until then they use the old embedder, if it was `static`.
     *
     * @example embedder: { profile: { provider: "workers-ai", modelId: "@cf/baai/bge-m3" }, dimensions: 1_024 }
     */
    embedder?: MemoryEmbedding;
    /**
     * A store of vectors, which finds artifacts by meaning, and the nearest memories of agents with more than 1 000. Its index must have the dimensions of the embedder, 100
     * for `static`, and no other use. Without a store, agents compare all vectors themselves.
     *
     * @example vectors: (env: DramatisEnv & { MEMORIES: Vectorize }) => new VectorizeVectorIndex(env.MEMORIES)
     */
    vectors?(env: DramatisEnv): VectorIndex;
    /** Maximum bytes of all memory indexes in an isolate. Default: 32 MiB. An isolate has 128 MB in total. */
    indexBytes?: number;
  };
  triggers?: {
    /**
     * Reports whether the subject of a trigger may still act in its tenant. The trigger calls it before each start, with a principal
     * without roles. By default every subject may act. Then triggers of a user who has left continue until they are disabled.
     */
    mayAct?(principal: Principal, env: DramatisEnv): boolean | Promise<boolean>;
  };
  /**
   * Places outside of Dramatis where people write to agents, by name. Their events arrive at `/api/channels/NAME`, and mails at the handler.
   *
   * @example
   * channels: {
   *   slack: {
   *     agent: "guide",
   *     adapter: (env: DramatisEnv & { SLACK_BOT_TOKEN: string; SLACK_SIGNING_SECRET: string }) =>
   *       slack({ botToken: env.SLACK_BOT_TOKEN, signingSecret: env.SLACK_SIGNING_SECRET }),
   *     user: ({ sender }) => ({ subject: sender }),
   *   },
   * }
   */
  channels?: Readonly<Record<string, ChannelOptions<DramatisEnv>>>;
  workspaces?: {
    /**
     * The first segment of the branches of conversations and runs, such as `dramatis/conv-…`. Default: `dramatis`. After a change, existing
     * workspaces keep their branches.
     */
    branchPrefix?: string;
    /**
     * Globs of files that agents cannot read, write or commit. Authors read them over HTTP. A glob without a slash matches in each folder. The
     * list replaces the default.
     *
     * @default [".env", ".env.!(example)", "*.pem", "*.key", "id_rsa", "id_ed25519"]
     */
    sensitiveFiles?: readonly string[];
  };
  telemetry?: {
    /** Sends the spans of turns, model calls, tools and calls of agents. Default: to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names. */
    exporter?: (env: DramatisEnv) => SpanExporter | undefined;
  };
  /** Limits of callers. `Limits` has the defaults. */
  limits?: Limits;
  /** Origins of pages that may use the API. Default: the server's own origin. */
  cors?: CorsOptions;
  /** The server at `/mcp`. */
  mcp?: McpOptions;
  /**
   * MCP servers with tools for agents, by their ids. A persona names their tools as `mcp:server/tool`, or `mcp:server/*` for all. The first
   * list of a server is accepted. Later changes wait for an operator.
   *
   * @example mcpServers: { github: { url: "https://mcp.example.com", headers: { authorization: { secret: "GITHUB_TOKEN", prefix: "Bearer " } } } }
   */
  mcpServers?: Readonly<Record<string, McpServerOptions>>;
  console?: {
    /**
     * Signs the readers of the console in with your own login. By default they paste a token, if the server needs one.
     *
     * @example signIn: { page: "/login", token: "/login/token", signOut: "/logout" }
     */
    signIn?: SignIn;
  };
  /**
   * Rules that decide before every call of a tool. The first rule that matches counts. Default: all calls are allowed.
   * @example policy: [{ id: "ask-after-web", effects: ["once"], tainted: true, then: "ask" }]
   */
  policy?: readonly PolicyRule[];
  /** Decides before every call of a tool, in code. The stricter answer of the policy and of the gate counts. Default: allows all. */
  gate?: Gate;
  /**
   * Returns the allowed locations of a tenant's agents and conversations. By default they have a jurisdiction only if their request
   * names it. Existing actors never move.
   *
   * @example location: (tenant) => (tenant === "acme" ? { jurisdiction: "eu", strict: true } : {})
   */
  location?: (tenant: string) => LocationPolicy;
  /**
   * Returns the days without activity after which a conversation is deleted; `undefined` keeps it. Default: conversations that lists leave
   * out, such as those of `POST /v1/chat/completions`, are deleted after 30 days.
   *
   * @example retention: ({ projectId, isListed }) => (projectId === "support" ? 90 : isListed ? undefined : 30)
   */
  retention?: RetentionPolicy;
  /**
   * Returns how a conversation without a title gets a title. `message` takes the beginning of its first message. `none` leaves it to people.
   * Default: `message`.
   *
   * @example titles: ({ projectId }) => (projectId === "health" ? "none" : "message")
   */
  titles?: TitlePolicy;
}

/** The names of the options. */
const OPTION_NAMES: Record<keyof DramatisOptions, true> = {
  ...{ agents: true, projects: true, workflows: true, libraries: true, artifactTypes: true, authorize: true },
  ...{ models: true, tasks: true, a2a: true, memory: true, triggers: true, channels: true, workspaces: true },
  ...{ telemetry: true, limits: true, cors: true, mcp: true, mcpServers: true, console: true, policy: true },
  ...{ gate: true, location: true, retention: true, titles: true },
};

/** Returns the agents and the libraries of an application. Throws `INVALID_INPUT` for an unknown option and for a definition that cannot be used. */
export function definitionsOf(options: DramatisOptions): {
  libraries: readonly Library[];
  agents: readonly FirstAgent[];
  code: DeployedCode;
} {
  checkOptions("`dramatis()`", options, OPTION_NAMES);
  const { libraries, agents } = collectAgents(options);
  const code = new DeployedCode(libraries);
  checkAgents(agents, code);
  return { libraries, agents, code };
}
