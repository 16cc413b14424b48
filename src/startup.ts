/** The checks of a runtime and the declaration of its first agents, reported by `/health`. */
import { notExported, type WorkerClasses, withoutStorage } from "./agents/base/lookup/class-problems.ts";
import { readResultTool } from "./attachments/large-result.ts";
import type { MissingPart } from "./http/base/context.ts";
import { builtIn } from "./library/built-in/built-in.ts";
import type { Library } from "./library/define/define.ts";
import { mcpReference } from "./library/definitions/mcp-reference.ts";
import { parseReference } from "./library/definitions/reference.ts";
import type { DeployedCode } from "./library/registry/deployed-code.ts";
import { parsePersonaSource } from "./library/registry/resolve.ts";
import { agentTarget } from "./library/tools/agent-tool.ts";
import { networkProblem } from "./library/tools/sub-agent.ts";
import type { PolicyRule } from "./policy/policy.ts";
import type { ActorLookup } from "./protocol/actor-lookup.ts";
import type { CreateAgent } from "./protocol/agent-api.ts";
import type { AgentTarget, ToolDefinition } from "./protocol/definitions.ts";
import type { TaskExecutor } from "./protocol/executor-api.ts";
import { dramatisError, invalid, unavailable } from "./shared/errors.ts";
import { isAgentId } from "./shared/identifiers.ts";
import { listIds } from "./shared/known-ids.ts";

/** An agent that code declares. */
export interface FirstAgent extends CreateAgent {
  /** Default: `local`. */
  tenant?: string;
}

/** Returns the missing parts of a configuration. The runtime serves requests without them. */
export function missingParts(
  { DB, BUCKET }: { DB?: unknown; BUCKET?: unknown },
  canAuthenticate: boolean,
  classes: WorkerClasses,
  missingKey: { keyName: string; baseUrlName: string } | undefined,
  hasChannels: boolean,
): MissingPart[] {
  const parts: (MissingPart & { isThere: boolean })[] = [
    {
      name: "DB",
      message: "Lists, dead letters and libraries by API answer 503. Add the D1 binding `DB`.",
      isThere: DB !== undefined,
    },
    {
      name: "BUCKET",
      message: "Attachments answer 503. Add the R2 binding `BUCKET`.",
      isThere: BUCKET !== undefined,
    },
    {
      name: "AUTH_SECRET",
      message:
        "The API answers 401. Set `AUTH_SECRET` or `AUTH_JWKS_URL`, pass `authorize`, or, on your own machine, set `DRAMATIS_LOCAL=1`.",
      isThere: canAuthenticate,
    },
    {
      name: missingKey?.keyName ?? "",
      message: `Personas without a model profile cannot answer. Set \`${missingKey?.keyName}\`. For a server without keys, set \`${missingKey?.baseUrlName}\` instead.`,
      isThere: missingKey === undefined,
    },
    {
      name: "Coordinator",
      message: `Runs of workflows answer 503. ${notExported("Coordinator")}`,
      isThere: classes.has("Coordinator"),
    },
    {
      name: "Trigger",
      message: `Triggers answer 503. ${notExported("Trigger")}`,
      isThere: classes.has("Trigger"),
    },
    {
      name: "Channel",
      message: `Channels answer 503. ${notExported("Channel")}`,
      isThere: classes.has("Channel") || !hasChannels,
    },
    {
      name: "EventLog",
      message: `Events and the search of messages answer 503. ${notExported("EventLog")}`,
      isThere: classes.has("EventLog"),
    },
    {
      name: "Workspace",
      message: `Tools on repositories fail. ${notExported("Workspace")}`,
      isThere: classes.has("Workspace"),
    },
  ];
  return [
    ...parts.filter(({ isThere }) => !isThere).map(({ name, message }) => ({ name, message })),
    ...classes.withoutStorage().map((name) => ({ name, message: withoutStorage(name) })),
  ];
}

/** Throws `UNAVAILABLE`, or the executor's own error with the setting to change, unless the executor answers an empty batch. */
export async function checkExecutor(executor: TaskExecutor): Promise<void> {
  try {
    await executor.run([], { report: async () => [], cancelled: async () => [] });
  } catch (cause) {
    const reason = dramatisError(cause);
    if (reason !== undefined) throw reason;
    throw unavailable(
      "Tools cannot run: the `Executor` does not answer. It must be the class of `dramatis()` or extend it, and a service binding `Executor` must have this class as its `entrypoint`.",
      { cause },
    );
  }
}

/**
 * Throws `INVALID_INPUT` for an invalid declaration, for two declarations with the same id, and for a persona that a deployed library
 * does not have. Authors may have written other libraries by API, so their references are resolved later.
 */
export function checkAgents(agents: readonly FirstAgent[], code: DeployedCode): void {
  const seen = new Set<string>();
  for (const { id, persona, tenant = "local" } of agents) {
    const refuse = (reason: string) => invalid(`Agent "${id}": ${reason}`);
    if (!isAgentId(id))
      throw refuse(
        "an agent's id is 1 to 64 lower-case letters, digits and hyphens, and begins with a letter or a digit; in a jurisdiction `_` and its name follow.",
      );
    const name = JSON.stringify([tenant, id]);
    if (seen.has(name)) throw refuse("`agents` declares this id twice. Rename one of them.");
    seen.add(name);
    const source = parsePersonaSource(persona, `/agents/${id}/persona`);
    if (typeof source === "object" && "identity" in source) continue;
    const reference = parseReference(source);
    if (!code.has(reference.library)) continue;
    const ids = code.ids("persona", reference.library);
    if (ids.includes(reference.id)) continue;
    throw refuse(
      `library "${reference.library}" has no persona "${reference.id}". It has: ${listIds(reference.id, ids)}.`,
    );
  }
}

/**
 * Logs a warning for each tool in code that calls an agent outside `agents`. This is not an error, because an author may have created the
 * agent by API. Without declared agents there are no warnings.
 */
export function reportUndeclared(agents: readonly FirstAgent[], libraries: readonly Library[]): void {
  const declared = [...new Set(agents.map(({ id }) => id))];
  if (declared.length === 0) return;
  for (const { id: library, tools } of libraries) {
    for (const { id, definition } of tools) {
      const called = agentTarget(definition.target)?.agent;
      if (called === undefined || declared.includes(called)) continue;
      console.warn(
        `Tool "${library}/${id}" calls the agent "${called}", which \`agents\` does not declare: ${listIds(called, declared)}. Its calls are NOT_FOUND unless the agent was made by API.`,
      );
    }
  }
}

/**
 * Logs a warning for each template in code with a tool that its agent lacks, or that its network forbids (SPAWN-2). This is not an error,
 * because authors may change the agent by API.
 */
export function reportTemplates(agents: readonly FirstAgent[], libraries: readonly Library[]): void {
  for (const { id: library, tools } of libraries) {
    for (const { id, definition } of tools) {
      const target = agentTarget(definition.target);
      if (target?.template === undefined) continue;
      const problems = agents
        .filter((agent) => agent.id === target.agent)
        .flatMap(({ persona }) => templateProblems(target, knownTools(persona, libraries)));
      for (const problem of new Set(problems)) console.warn(`Tool "${library}/${id}": ${problem}`);
    }
  }
}

/**
 * Logs a warning for each exact name in a policy that no tool in code has. This is not an error, because an author may have made the tool by
 * API, and clients bring tools.
 */
export function reportPolicy(policy: readonly PolicyRule[], libraries: readonly Library[]): void {
  const known = [...libraries, builtIn].flatMap(({ tools }) =>
    tools.map(({ definition }) => definition.name),
  );
  const names = [...new Set([...known, readResultTool.name])];
  for (const { id, tools = [] } of policy) {
    for (const name of tools) {
      if (name.endsWith("*") || name.startsWith("mcp__") || names.includes(name)) continue;
      console.warn(
        `The rule "${id}" of the policy names the tool "${name}", which no library in code has. The tools are: ${listIds(name, names)}. The rule does not apply unless the tool was made by API, or comes from a client.`,
      );
    }
  }
}

function templateProblems(
  { agent, template: { tools, network = "none" } = { name: "", tools: [] } }: AgentTarget,
  { known, isComplete }: KnownTools,
): string[] {
  return tools.flatMap((name) => {
    const tool = known.find((one) => one.name === name);
    if (tool === undefined) {
      if (!isComplete) return [];
      const names =
        known.length === 0
          ? "none"
          : listIds(
              name,
              known.map((one) => one.name),
            );
      return `its template names the tool "${name}", which the agent "${agent}" does not have, so its calls fail. The agent has: ${names}.`;
    }
    const problem = networkProblem(tool, network);
    if (problem === null) return [];
    const remedy =
      tool.hosts === undefined
        ? `Declare the \`hosts\` of "${name}", \`[]\` if its code reaches none, or set \`network: "any"\``
        : "Allow this host in `network`, or remove the tool from the template";
    return `sub-agents do not get the tool "${name}": ${problem}. ${remedy}.`;
  });
}

/** The tools of a persona, as far as deployed libraries contain them. */
interface KnownTools {
  known: ToolDefinition[];
  isComplete: boolean;
}

function knownTools(persona: FirstAgent["persona"], libraries: readonly Library[]): KnownTools {
  const source = parsePersonaSource(persona);
  const isInline = typeof source === "object" && "identity" in source;
  const { library: home, id, version } = isInline ? { library: undefined } : parseReference(source);
  const held = libraries.find((library) => library.id === home)?.personas.find((one) => one.id === id);
  const definition = isInline ? source : held?.definition;
  if (definition === undefined || version !== undefined) return { known: [], isComplete: false };
  const found = (definition.tools?.toolIds ?? []).map((reference) => {
    if (mcpReference(reference) !== undefined) return undefined;
    const tool = parseReference(reference, home);
    const library = libraries.find((one) => one.id === tool.library);
    const known = library?.tools.find(({ id }) => id === tool.id);
    return tool.version === undefined ? known?.definition : undefined;
  });
  const known = found.filter((tool) => tool !== undefined);
  return { known, isComplete: known.length === found.length };
}

/** Creates or updates the agents that the code declares. Throws `UNAVAILABLE` if a declaration cannot be used. */
export async function declareAgents(actors: ActorLookup, agents: readonly FirstAgent[]): Promise<void> {
  for (const { tenant = "local", ...agent } of agents) {
    const actor = await actors.agent(tenant, agent.id, agent.locationHint);
    const principal = { subject: "system", tenant, roles: ["admin"] };
    const declared = await actor.create(principal, agent, { isDeclaration: true });
    // During a deploy the actor may still run a release that refuses to create an agent twice.
    if (declared.ok || declared.error.code === "CONFLICT") continue;
    throw unavailable(
      `The agent "${agent.id}" cannot be what \`agents\` declares: ${declared.error.message}`,
    );
  }
}
