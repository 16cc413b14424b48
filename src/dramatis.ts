/**
 * The composition root: makes a Worker from an application's libraries and policies. Three kinds of code use the platform's
 * clock, ids and storage directly: this file and `stores.ts`, the shells of the Durable Objects, and defaults of ports in `d1`, `http` and
 * `engine`. `http` also makes ids with `ulid`, and `messageToEvent` of `memory` has the platform's id and time as a default. All
 * other code of the server gets ports.
 */
import { type RemoteAgentPorts, RemoteAgents } from "./a2a/remote-agents.ts";
import { atBaseUrl, defaultModelProfile, missingKey } from "./adapters/default-profile.ts";
import { adapterFor } from "./adapters/formats/lookup.ts";
import { mayReceiveKey, type TrustedHost, trustedHosts } from "./adapters/gateway/trusted-hosts.ts";
import { admitGateway } from "./adapters/resilience/admitted-gateway.ts";
import { guardGateway } from "./adapters/resilience/guarded-gateway.ts";
import { HostGuards } from "./adapters/resilience/host-guards.ts";
import { MediaBudget } from "./adapters/resilience/media-budget.ts";
import { spanLog } from "./adapters/telemetry/log-lines.ts";
import { exporterOf } from "./adapters/telemetry/otlp-exporter.ts";
import { createAgentClass } from "./agents/agent/agent.ts";
import { indexes } from "./agents/agent/memory-agent.ts";
import { memoryStores } from "./agents/agent/memory-stores.ts";
import type { Application } from "./agents/base/application.ts";
import type { WorkerClasses } from "./agents/base/lookup/class-problems.ts";
import { durableActors } from "./agents/base/lookup/durable-actors.ts";
import { eventLogs } from "./agents/base/lookup/event-logs.ts";
import { checkExports, entrypointOf, workerClasses } from "./agents/base/lookup/exported-classes.ts";
import { ownedStores } from "./agents/base/removal/owned-stores.ts";
import { removeWorkspace } from "./agents/base/removal/removed-workspace.ts";
import { createChannelClass } from "./agents/channel/channel.ts";
import { createConversationClass } from "./agents/conversation/conversation.ts";
import { createCoordinatorClass } from "./agents/coordinator/coordinator.ts";
import { createEventLogClass } from "./agents/event-log/event-log.ts";
import { createExecutorClass } from "./agents/executor/executor.ts";
import { createTriggerClass } from "./agents/trigger/trigger.ts";
import { createWorkspaceClass, shellOf } from "./agents/workspace/workspace.ts";
import { D1Definitions } from "./d1/d1-definitions.ts";
import { D1McpLists } from "./d1/mcp-lists.ts";
import { listsMoveOf } from "./d1/move-lists.ts";
import { builtInEmbeddings, builtInGateway } from "./gateways.ts";
import { declareProjects } from "./git/declared-projects.ts";
import { webhookPoster, webhookProblems } from "./http/a2a/push-sender.ts";
import { createHttpApp, type HttpApp } from "./http/app.ts";
import { defaultAuthorize } from "./http/auth/authorize.ts";
import { checkJwtConfiguration, isJwtConfigured } from "./http/auth/jwt.ts";
import { completeLimits } from "./http/base/http-limits.ts";
import { channelsOf } from "./http/channels.ts";
import type { LibraryPorts } from "./library/authoring/authoring.ts";
import { importedChain } from "./library/authoring/imported-chain.ts";
import type { Library } from "./library/define/define.ts";
import { placed } from "./library/definitions/placed.ts";
import { parseReference } from "./library/definitions/reference.ts";
import { CODE_TENANT } from "./library/registry/definition-source.ts";
import { type PinOptions, pinTool, pinWorkflow } from "./library/registry/pin.ts";
import { Registry } from "./library/registry/registry.ts";
import { resolveChain } from "./library/registry/resolve.ts";
import { resolveUpkeep } from "./library/registry/upkeep.ts";
import { resolverAt } from "./library/tasks/resolver.ts";
import { checkedRunInput } from "./library/workflows/run-input.ts";
import { McpConnections } from "./mcp/connections.ts";
import { McpTools } from "./mcp/mcp-tools.ts";
import type { McpList } from "./mcp/pins.ts";
import { mcpServersOf } from "./mcp/servers.ts";
import { IndexPool } from "./memory/corpus/index/pool.ts";
import type { ModelProfile } from "./model/profile.ts";
import { type DramatisEnv, type DramatisOptions, definitionsOf } from "./options.ts";
import { strictestOf } from "./policy/gate.ts";
import { sensitiveFiles } from "./policy/globs.ts";
import { policyOf } from "./policy/policy.ts";
import { DEFAULT_RETENTION } from "./policy/retention.ts";
import { DEFAULT_TITLES } from "./policy/titles.ts";
import { systemClock, systemIds } from "./ports/system.ts";
import { absentChannel } from "./protocol/channels.ts";
import type { TaskExecutor } from "./protocol/executor-api.ts";
import { checkedPolicy } from "./protocol/location-policy.ts";
import { workspaceOf } from "./protocol/workspace.ts";
import { defined } from "./shared/defined.ts";
import { allowedHosts, listedIn } from "./shared/host-rules.ts";
import { checkSignIn } from "./shared/sign-in.ts";
import {
  checkExecutor,
  declareAgents,
  missingParts,
  reportPolicy,
  reportTemplates,
  reportUndeclared,
} from "./startup.ts";
import { required, storesOf } from "./stores.ts";

/**
 * Makes the Worker of an application. Export its classes under their own names, and its handler as the default. Throws `INVALID_INPUT`.
 *
 * @example
 * const app = dramatis({ agents: [guide] });
 * export const { Conversation, Agent, Coordinator, Trigger, EventLog, Workspace, Executor } = app;
 * export default app.handler;
 */
export function dramatis(options: DramatisOptions) {
  const { libraries: inCode, agents, code } = definitionsOf(options);
  const { models = {}, policy = [] } = options;
  const gate = strictestOf(policyOf(policy), ...(options.gate === undefined ? [] : [options.gate]));
  const isSensitive = sensitiveFiles(options.workspaces?.sensitiveFiles);
  const limits = completeLimits(options.limits);
  const channels = channelsOf<DramatisEnv>(options.channels ?? {});
  const exporter = options.telemetry?.exporter ?? exporterOf;
  const location = (tenant: string) => checkedPolicy(options.location?.(tenant));

  const signIn = options.console?.signIn;
  if (signIn !== undefined) checkSignIn(signIn);
  reportUndeclared(agents, inCode);
  reportTemplates(agents, inCode);
  reportPolicy(policy, inCode);
  const mcp = {
    servers: mcpServersOf(options.mcpServers),
    connections: new McpConnections(systemClock),
    pauses: new Map<string, number>(),
    clock: systemClock,
  };
  const mcpTools = (env: DramatisEnv) =>
    new McpTools({
      ...mcp,
      lists: env.DB === undefined ? null : new D1McpLists<McpList>(env.DB, systemClock),
      variable: (name) => Reflect.get(env, name),
      settings: async (project) => (await settings(env)?.read(project)) ?? {},
    });
  const registry = (env: DramatisEnv, tenant: string, projectId?: string) => {
    const { DB } = env;
    const stores = DB && {
      deployed: new D1Definitions(DB, CODE_TENANT),
      authored: new D1Definitions(DB, tenant),
    };
    return new Registry(code, stores, mcpTools(env).source(tenant, projectId));
  };

  const stores = storesOf(options, (env) => builtInEmbeddings(env, trusted));
  const { directory, deadLetters, triggers, objects, attachments, artifacts, projects } = stores;
  const { settings, secrets, vectors } = stores;
  const lists = (env: DramatisEnv) => listsMoveOf(env, systemClock);
  const requiredArtifacts = (env: DramatisEnv) =>
    required(artifacts(env), "Artifacts need the D1 binding `DB` and the R2 binding `BUCKET`");
  const owned = (env: DramatisEnv) =>
    ownedStores({
      ...{ rows: stores.rows(env), objects: objects(env), vectors: vectors(env), events: eventLogs(env) },
      workspaces: hasWorkspaces(workerClasses(env))
        ? async (tenant, conversationId) => {
            const { id } = workspaceOf({ conversationId });
            await removeWorkspace(await durableActors(env).workspace(tenant, id));
          }
        : null,
    });

  const trusted = (env: DramatisEnv) => hostsOf(inCode, options, env);
  const mayReach = ({ DRAMATIS_HTTP_HOSTS: hosts }: DramatisEnv) =>
    allowedHosts([...(options.tasks?.allowedHosts ?? []), ...listedIn(hosts)]);
  const noticeHosts = ({ DRAMATIS_WEBHOOK_HOSTS: hosts }: DramatisEnv) => [
    ...(options.a2a?.webhookHosts ?? []),
    ...listedIn(hosts),
  ];
  const { resolver } = options.tasks ?? {};
  const resolve = resolver === undefined ? undefined : resolverAt(resolver);
  const libraries = (env: DramatisEnv, tenant: string): LibraryPorts => ({
    registry: registry(env, tenant),
    mayReceiveKey: (profile) => mayReceiveKey(profile, trusted(env)),
    mayReach: mayReach(env),
  });
  const credentials =
    (env: DramatisEnv): RemoteAgentPorts["credentials"] =>
    async (...of) =>
      (await secrets(env)?.credentials(...of)) ?? [];
  const remoteAgents = (env: DramatisEnv) => {
    const ports = { mayReach: mayReach(env), credentials: credentials(env), ...defined({ resolve }) };
    return new RemoteAgents({ code, clock: systemClock, ...ports });
  };
  const { interceptors = [], metrics, ...guardOptions } = models.resilience ?? {};
  const guards = new HostGuards(systemClock, guardOptions);
  const mediaBudget = new MediaBudget(systemClock);
  const gateway = (env: DramatisEnv) => {
    const built = models.gateway?.(env) ?? builtInGateway(env, models.languageModels, trusted);
    const guarded = guardGateway(built, { guards, interceptors, ids: systemIds });
    const admission = settings(env);
    return admission === null ? guarded : admitGateway(guarded, admission);
  };
  /** Returns the model profile of a project's settings. Throws `NOT_FOUND` if it is not there. */
  const projectProfile = async (env: DramatisEnv, tenant: string, projectId = "") => {
    const { modelProfileId } = (await settings(env)?.read({ tenant, projectId })) ?? {};
    if (modelProfileId === undefined) return undefined;
    return placed(`Project "${projectId}", /modelProfileId`, () =>
      registry(env, tenant).modelProfile(parseReference(modelProfileId)),
    );
  };

  const defaultProfile = (env: DramatisEnv) =>
    models.default ?? defaultModelProfile(env, env.AI !== undefined);

  const pinOptions = (env: DramatisEnv): PinOptions => ({
    defaultProfile: defaultProfile(env),
    complete: (profile) => atBaseUrl(profile, env),
  });

  const pool = options.memory?.indexBytes === undefined ? indexes : new IndexPool(options.memory.indexBytes);
  const canAuthenticate = (env: DramatisEnv) =>
    options.authorize !== undefined || isJwtConfigured(env) || env.DRAMATIS_LOCAL === "1";

  const http = createHttpApp<DramatisEnv>({
    authorize: options.authorize ?? defaultAuthorize,
    requestPorts: (env) => ({
      actors: durableActors(env),
      location,
      channels: () => channels(env),
      directory: () => required(directory(env), "Lists need the D1 binding `DB`"),
      deadLetters: () => required(deadLetters(env), "Lists need the D1 binding `DB`"),
      triggers: () => required(triggers(env), "Lists need the D1 binding `DB`"),
      lists: () => required(lists(env), "Lists need the D1 binding `DB`"),
      attachments: () => required(attachments(env), "Attachments need the R2 binding `BUCKET`"),
      settings: () => required(settings(env), "Projects need the D1 binding `DB`"),
      secrets: () => required(secrets(env), "Projects need the D1 binding `DB`"),
      projects: () =>
        required(projects(env), "Projects need the D1 binding `DB` and the R2 binding `BUCKET`"),
      artifacts: () => requiredArtifacts(env),
      mcpServers: () => mcpTools(env),
      libraries: (tenant) => libraries(env, tenant),
      inCode: (tenant) =>
        agents.filter(({ tenant: owner = "local" }) => owner === tenant).map(({ id }) => id),
      ...defined({ signIn, resolve, webhookProblem: webhookProblems(noticeHosts(env)) }),
      model: () => (defaultProfile(env).provider === "offline" ? "offline" : undefined),
      missing: () =>
        missingParts(
          env,
          canAuthenticate(env),
          workerClasses(env),
          models.default === undefined ? missingKey(env, env.AI !== undefined) : undefined,
          options.channels !== undefined,
        ),
    }),
    async seed(env) {
      if (options.authorize === undefined && isJwtConfigured(env)) checkJwtConfiguration(env);
      trusted(env);
      mayReach(env);
      allowedHosts(noticeHosts(env));
      exporter(env);
      checkExports(env);
      if (models.default === undefined) defaultModelProfile(env, env.AI !== undefined);
      await checkExecutor(executorOf(env));
      await declareAgents(durableActors(env), agents);
      const repositories = projects(env);
      if (repositories === null) return;
      await declareProjects(repositories, options.projects ?? [], systemClock.now());
      await repositories.finishRemovals();
    },
    limits,
    rateLimiter: (env) => env.RATE_LIMITER,
    issuers: ({ AUTH_ISSUER: issuer = "" }) =>
      options.mcp?.authorizationServers ?? (URL.canParse(issuer) ? [issuer] : []),
    mcp: {
      ...options.mcp,
      pinTool: (env, tenant, reference) => pinTool(registry(env, tenant), reference, pinOptions(env)),
    },
    ...defined({ cors: options.cors }),
  });

  const application = (env: DramatisEnv): Application => ({
    actors: durableActors(env),
    executor: { run: (...batch) => executorOf(env).run(...batch) },
    directory: () => directory(env),
    eventLog: () => eventLogs(env),
    stores: () => owned(env),
    attachments: attachments(env),
    maxAttachmentBytes: limits.attachmentBytes,
    exporter: exporter(env),
    log: spanLog(env),
    location,
    workflow: (tenant, reference) => pinWorkflow(registry(env, tenant), reference, pinOptions(env)),
    checkedInput: ({ definition }, input, path = "/input") => checkedRunInput(definition, input, path),
  });

  return {
    Conversation: createConversationClass<DramatisEnv & Cloudflare.Env>((env) => ({
      ...application(env),
      gateway: gateway(env),
      knowledge: async (...request) => artifacts(env)?.knowledge(...request),
      ...(hasWorkspaces(workerClasses(env)) && { workspace: durableActors(env).workspace }),
      retention: options.retention ?? DEFAULT_RETENTION,
      titles: options.titles ?? DEFAULT_TITLES,
      importedChain: (tenant, chain, path) => importedChain({ ...libraries(env, tenant), code }, chain, path),
      mediaBudget,
      adapters: adapterFor,
      gate,
      agentTurns: limits.agentTurns,
      clientToolTimeoutMs: limits.clientToolMs,
      calls: limits.calls,
      approvalTimeoutMs: limits.approvalMs,
      toolCalls: limits.toolCalls,
      cancelRemote: (...task) => remoteAgents(env).cancel(...task),
      ...defined({
        metrics,
        postWebhook: webhookPoster(noticeHosts(env), resolve),
        turnLimit: limits.turns === false ? undefined : limits.turns,
        changeLimit: limits.changes === false ? undefined : limits.changes,
      }),
    })),
    Agent: createAgentClass<DramatisEnv & Cloudflare.Env>((env) => {
      const complete = (profile: ModelProfile) => atBaseUrl(profile, env);
      return {
        ...application(env),
        resolve: (tenant, persona, projectId) =>
          resolveChain(registry(env, tenant, projectId), persona, defaultProfile(env), complete, () =>
            projectProfile(env, tenant, projectId),
          ),
        registry: (tenant) => registry(env, tenant),
        upkeep: (tenant, persona) =>
          resolveUpkeep(registry(env, tenant), persona, defaultProfile(env), complete),
        memory: {
          stores: memoryStores(env),
          vectors: () => vectors(env),
          pool,
          embedders: (agent) => stores.embedders(env, agent),
        },
      };
    }),
    Coordinator: createCoordinatorClass<DramatisEnv & Cloudflare.Env>((env) => ({
      ...application(env),
      permitRun: async (tenant, projectId) =>
        (await settings(env)?.permitRun({ tenant, projectId }, async () =>
          directory(env)?.activeRuns(tenant, projectId),
        )) ?? false,
      tree: limits.runs,
      ...defined({ fanOutWidth: limits.fanOutWidth }),
    })),
    Channel: createChannelClass<DramatisEnv & Cloudflare.Env>((env) => ({
      ...application(env),
      adapter: (name) => {
        const channel = channels(env).get(name);
        if (channel === undefined) throw absentChannel(name);
        return channel.adapter;
      },
      server: env.DRAMATIS_URL,
    })),
    Trigger: createTriggerClass<DramatisEnv & Cloudflare.Env>((env) => ({
      ...application(env),
      triggers: () => triggers(env),
      mayAct: (principal) => options.triggers?.mayAct?.(principal, env) ?? true,
    })),
    Executor: createExecutorClass<DramatisEnv & Cloudflare.Env>((env) => ({
      tools: code,
      clock: systemClock,
      baseUrl: env.DRAMATIS_URL,
      attachments: attachments(env),
      maxAttachmentBytes: limits.attachmentBytes,
      artifacts: () => requiredArtifacts(env),
      mcp: (call, server, context) => mcpTools(env).call(call, server, context),
      remoteAgent: (...call) => remoteAgents(env).call(...call),
      mayReach: mayReach(env),
      ...defined({ resolve }),
      credentials: credentials(env),
      models: () => ({
        gateway: gateway(env),
        adapters: adapterFor,
        embeddings: builtInEmbeddings(env, trusted),
        defaultProfile: defaultProfile(env),
      }),
      vectors: new Map(Object.entries(options.tasks?.vectors?.(env) ?? {})),
    })),
    EventLog: createEventLogClass<DramatisEnv & Cloudflare.Env>(),
    Workspace: createWorkspaceClass<DramatisEnv & Cloudflare.Env>((env) => ({
      projects: () =>
        required(projects(env), "Repositories need the D1 binding `DB` and the R2 binding `BUCKET`"),
      shell: shellOf(env.SHELL),
      branchPrefix: options.workspaces?.branchPrefix ?? "dramatis",
      isSensitive,
    })),
    handler: { fetch: http.fetch, email: http.email } satisfies HttpApp<DramatisEnv>,
  };
}

/** Reports whether workspaces can exist. A Worker that was deployed before them may export the class without its migration. */
function hasWorkspaces(classes: WorkerClasses): boolean {
  return classes.has("Workspace") && !classes.lacksStorage("Workspace");
}

/** Returns the executor of this Worker. Throws `UNAVAILABLE` unless the Worker exports it. */
function executorOf(env: DramatisEnv): TaskExecutor {
  // SAFETY: the application exports the class of `createExecutorClass`, or a class of its own with the same interface.
  return entrypointOf(env, "Executor") as TaskExecutor;
}

/** Returns the hosts that may receive keys. Throws `INVALID_INPUT` for an invalid host or name of a key. */
function hostsOf(
  libraries: readonly Library[],
  { models = {}, memory = {} }: DramatisOptions,
  env: DramatisEnv,
): TrustedHost[] {
  const { default: fallback, allowedHosts, allowedSecrets } = models;
  const inCode = libraries.flatMap(({ modelProfiles }) => modelProfiles.map(({ definition }) => definition));
  const embedder = typeof memory.embedder === "object" ? memory.embedder.profile : undefined;
  const profiles = [...inCode, fallback, embedder].filter((profile) => profile !== undefined);
  return trustedHosts({ env, profiles, ...defined({ allowedHosts, allowedSecrets }) });
}
