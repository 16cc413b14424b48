/**
 * Checks of the definitions that authors post.
 *
 * AUTHOR-1  Everything that a definition refers to exists when it is added. In a persona, a bare id means a definition of
 *           the persona's own library.
 * AUTHOR-2  A tool by API is data over the code of a deployed tool, a task, a workflow, or over an agent. It cannot promise more about repeating it than the
 *           deployed tool does.
 * AUTHOR-3  A model profile by API can send a key only to hosts that the deployer trusts, and can name only keys that the
 *           deployer allows.
 * AUTHOR-4  The expressions of a tool's input mapping are compiled when the tool is added; an error names the member.
 */
import type { ModelProfile } from "../../model/profile.ts";
import { needOver, needsApproval, ruleOf } from "../../protocol/approval.ts";
import type { ApprovalNeed } from "../../protocol/approval-schema.ts";
import type {
  AgentTarget,
  HookTarget,
  Persona,
  RetryPolicy,
  Skill,
  TaskTarget,
  ToolDefinition,
  ToolEffect,
  ToolTarget,
  WorkflowTarget,
} from "../../protocol/definitions.ts";
import { defined } from "../../shared/defined.ts";
import { type DramatisError, type InputIssue, invalid } from "../../shared/errors.ts";
import { type Mapping, mappingIssues } from "../../shared/expressions/mapping.ts";
import { unlistedHosts } from "../../shared/host-rules.ts";
import type { JsonObject } from "../../shared/json.ts";
import { Patterns } from "../../shared/json-schema/pattern.ts";
import { isPlainUrl } from "../../shared/text.ts";
import { issuesText } from "../../shared/validation.ts";
import { strictest } from "../definitions/effects.ts";
import { inputSchemaIssues } from "../definitions/input-schema.ts";
import { mcpReference } from "../definitions/mcp-reference.ts";
import { isWrongReference } from "../definitions/placed.ts";
import { type DefinitionKey, formatReference, parseReference } from "../definitions/reference.ts";
import { isInlineSkill } from "../definitions/version-chain.ts";
import { HOOKS, hookReference } from "../hooks/hook-forms.ts";
import type { HookUse } from "../hooks/hook-inputs.ts";
import { completePersona } from "../personas/persona.ts";
import { findHook } from "../registry/hook.ts";
import type { Registry, Runnable } from "../registry/registry.ts";
import { refuseEqualNames, resolveFallbacks } from "../registry/resolve.ts";
import { checkSkills, skillId, skillsIssues } from "../skills/skill.ts";
import { agentDefaults, agentTarget, RESERVED, reservedMember } from "../tools/agent-tool.ts";
import { a2aTarget, REMOTE_DEFAULTS, remoteHost } from "../tools/remote-agent.ts";
import { completeRetry } from "../tools/tool-forms.ts";
import { timeoutProblem } from "../tools/tool-schema.ts";
import { WORKFLOW_DEFAULTS } from "../tools/workflow-tool.ts";

export interface LibraryPorts {
  registry: Registry;
  /** Reports whether the deployer trusts the profile's host with the profile's key. */
  mayReceiveKey(profile: ModelProfile): boolean;
  /** Reports whether posted tasks may reach a host, as an action names it. */
  mayReach(host: string): boolean;
}

/** A tool as an author posts it. Absent fields have the values of the deployed tool. */
export interface PostedTool {
  name: string;
  description: string;
  /** The target: a task, a deployed tool with code, a workflow, an agent, or an agent of another server. */
  target: ToolTarget;
  inputSchema?: JsonObject;
  effect?: ToolEffect;
  timeoutMs?: number;
  /** Expressions over `input`. */
  inputMapping?: Mapping;
  retry?: Partial<RetryPolicy>;
  async?: boolean;
  approval?: ApprovalNeed;
}

/** Returns the persona with its settings filled in. Throws `INVALID_INPUT`, naming the field. */
export async function checkedPersona(
  { registry }: LibraryPorts,
  { library }: DefinitionKey,
  persona: Persona,
): Promise<Persona> {
  const { identity, memory, tools, titles, skills = [] } = persona;
  const { modelProfileId } = identity;
  const { compactionProfileId, extract, consolidation: { by } = {} } = memory ?? {};
  if (modelProfileId !== undefined) {
    await resolving("/identity/modelProfileId", async () => {
      const profile = await registry.modelProfile(parseReference(modelProfileId, library));
      await resolveFallbacks(registry, profile);
    });
  }
  if (compactionProfileId !== undefined)
    await resolving("/memory/compactionProfileId", () =>
      registry.modelProfile(parseReference(compactionProfileId, library)),
    );
  if (titles !== undefined)
    await resolving("/titles/modelProfileId", () =>
      registry.modelProfile(parseReference(titles.modelProfileId, library)),
    );
  if (typeof extract === "object")
    await resolving("/memory/extract/profileId", () =>
      registry.modelProfile(parseReference(extract.profileId, library)),
    );
  const hook = async (name: HookUse, place: string, target: HookTarget | undefined) => {
    if (target === undefined) return;
    const path = `/memory/${place}/${hookReference(target).kind}`;
    await resolving(path, () => findHook(registry, { name, target, home: library }));
  };
  for (const name of HOOKS) await hook(name, name, memory?.[name]);
  await hook("consolidation", "consolidation/by", by);
  const resolved = await Promise.all(
    (tools?.toolIds ?? []).map((tool, index) =>
      resolving(`/tools/toolIds/${index}`, async () => {
        const mcp = mcpReference(tool);
        if (mcp === undefined) return [await registry.tool(parseReference(tool, library))];
        registry.mcp.check(mcp);
        return [];
      }),
    ),
  );
  await resolving("/tools/toolIds", async () => refuseEqualNames(resolved.flat()));
  const found = await Promise.all(
    skills.map((skill, index) =>
      isInlineSkill(skill)
        ? skill
        : resolving(`/skills/${index}`, async () => {
            const { definition } = await registry.skill(parseReference(skill, library));
            return definition;
          }),
    ),
  );
  checkSkills(found);
  return completePersona(persona);
}

/** Steps of compiling a posted tool's patterns: about 5 milliseconds, since one reply may call 64 such tools. */
const MAX_COMPILE_STEPS = 100_000;

/** Returns the tool with the fields of the deployed tool filled in. Throws `INVALID_INPUT`, naming the field. */
export async function checkedTool(
  { registry, mayReach }: LibraryPorts,
  { library }: DefinitionKey,
  {
    target,
    name,
    description,
    inputSchema,
    effect,
    timeoutMs,
    inputMapping,
    retry,
    async: isAsync,
    approval,
  }: PostedTool,
): Promise<ToolDefinition> {
  const agent = agentTarget(target);
  const { bound, code } =
    "task" in target
      ? await taskOf(registry, target, library)
      : "workflow" in target
        ? await workflowOf(registry, target, library)
        : "a2a" in target
          ? { bound: target, code: remoteTool() }
          : { bound: target, code: agentTool(target) };
  const { retry: ofCode, ...usual } = code;
  if (effect !== undefined && agent === undefined && strictest(effect, code.effect) !== effect)
    throw refusedAt("/effect", `Must not promise more than the target, which is ${code.effect}.`);
  if (approval === "never" && needsApproval(code.approval))
    throw refusedAt("/approval", "Must not be `never`: the deployed tool needs an approval of each call.");
  const [rule, ruleOfCode] = [ruleOf(approval), ruleOf(code.approval)];
  if (rule !== undefined && ruleOfCode !== undefined && JSON.stringify(rule) !== JSON.stringify(ruleOfCode))
    throw refusedAt("/approval", "Must be absent: the deployed tool says who may answer.");
  const issues =
    inputSchema === undefined
      ? []
      : inputSchemaIssues(inputSchema, "/inputSchema", new Patterns(MAX_COMPILE_STEPS));
  if (inputMapping !== undefined) issues.push(...mappingIssues(inputMapping, ["input"], "/inputMapping"));
  const reserved = agent && inputSchema && reservedMember(agent, inputSchema);
  if (reserved !== undefined) issues.push({ path: `/inputSchema/properties/${reserved}`, message: RESERVED });
  const remote = a2aTarget(target);
  const host = remote && remoteHost(remote);
  if (host !== undefined && !mayReach(host))
    issues.push({ path: "/target/a2a", message: unlistedHosts("tools", [host]) });
  const problem = timeoutProblem({ target, timeoutMs: timeoutMs ?? usual.timeoutMs });
  if (problem !== null) issues.push({ path: "/timeoutMs", message: problem });
  if (issues.length > 0) throw refused(issues);
  const attempts =
    retry === undefined
      ? effect === "once"
        ? undefined
        : ofCode
      : completeRetry(retry, effect ?? code.effect, (path, message) => {
          throw refusedAt(`/${path.join("/")}`, message);
        });
  return {
    ...usual,
    name,
    description,
    ...defined({ inputSchema, effect, timeoutMs, inputMapping, retry: attempts, async: isAsync }),
    ...defined({ approval: needOver(code.approval, approval) }),
    target: bound,
  };
}

/** Returns the defaults of a posted tool over an agent of another server. */
function remoteTool(): Runnable["definition"] {
  return REMOTE_DEFAULTS;
}

function agentTool(target: AgentTarget): Runnable["definition"] {
  return { ...agentDefaults(target), effect: "once" };
}

/** Returns the target of a posted tool. Throws `INVALID_INPUT`. */
async function taskOf(
  registry: Registry,
  { task }: TaskTarget,
  library: string,
): Promise<{ bound: TaskTarget; code: Runnable["definition"] }> {
  return resolving("/target/task", async () => {
    const reference = parseReference(task, library);
    const { definition } = await registry.runnable(reference);
    return { bound: { task: formatReference(reference) }, code: definition };
  });
}

/** Returns the workflow target of a posted tool, and the tool's defaults. Throws `INVALID_INPUT`. */
async function workflowOf(
  registry: Registry,
  { workflow }: WorkflowTarget,
  library: string,
): Promise<{ bound: WorkflowTarget; code: Runnable["definition"] }> {
  return resolving("/target/workflow", async () => {
    const reference = parseReference(workflow, library);
    const { inputSchema } = (await registry.workflow(reference)).definition;
    return { bound: { workflow: formatReference(reference) }, code: { ...WORKFLOW_DEFAULTS, inputSchema } };
  });
}

/**
 * Throws `INVALID_INPUT` with the field below `path` if the tenant may not choose the host or the key of a profile
 * (AUTHOR-3).
 */
export function refuseUntrusted(
  { mayReceiveKey }: Pick<LibraryPorts, "mayReceiveKey">,
  profile: ModelProfile,
  path: string,
): void {
  const { provider, baseUrl } = profile;
  if (baseUrl !== undefined) {
    if (provider === "ai-sdk" || provider === "offline")
      throw refusedAt(`${path}/baseUrl`, `The provider ${provider} takes no base URL.`);
    if (!isPlainUrl(baseUrl))
      throw refusedAt(`${path}/baseUrl`, "Must have no user, password, query and fragment.");
  }
  if (!mayReceiveKey(profile)) {
    const { apiKeySecret: _, ...withDefaultKey } = profile;
    throw mayReceiveKey(withDefaultKey)
      ? refusedAt(
          `${path}/apiKeySecret`,
          "Must name an allowed key. The deployer lists it in DRAMATIS_MODEL_SECRETS, or in `models.allowedSecrets` of dramatis().",
        )
      : refusedAt(
          `${path}/baseUrl`,
          "Must be at a trusted host. The deployer lists it in DRAMATIS_MODEL_HOSTS, or in `models.allowedHosts` of dramatis().",
        );
  }
}

/** Returns the profile. Throws `INVALID_INPUT`, naming the field. */
export async function checkedModelProfile(
  { registry, mayReceiveKey }: LibraryPorts,
  { library, id }: DefinitionKey,
  profile: ModelProfile,
): Promise<ModelProfile> {
  refuseUntrusted({ mayReceiveKey }, profile, "");
  await resolving("/fallbacks", async () => {
    for (const reference of profile.fallbacks ?? []) {
      const target = parseReference(reference, library);
      if (target.library === library && target.id === id)
        throw invalid("A model profile cannot be its own fallback.");
    }
    await resolveFallbacks(registry, { library, id, definition: profile });
  });
  return profile;
}

/** Returns the skill. Throws `INVALID_INPUT`, naming the field (SKILL-3, SKILL-6). */
export async function checkedSkill(
  _ports: LibraryPorts,
  { id }: DefinitionKey,
  skill: Skill,
): Promise<Skill> {
  const name = skillId(skill);
  if (id !== name)
    throw refusedAt("/id", `Must be the \`name\` in \`SKILL.md\`, which is "${name}". Change one of them.`);
  const [issue] = skillsIssues([skill]);
  if (issue !== undefined) throw refusedAt("/files", issue.message);
  return skill;
}

/** Returns the result of `find`. Errors about references become `INVALID_INPUT` at the JSON pointer `path`. */
async function resolving<Found>(path: string, find: () => Promise<Found>): Promise<Found> {
  try {
    return await find();
  } catch (error) {
    throw isWrongReference(error) ? refusedAt(path, error.message) : error;
  }
}

function refusedAt(path: string, message: string): DramatisError {
  return refused([{ path, message }]);
}

function refused(issues: InputIssue[]): DramatisError {
  const errors = issues.slice(0, 20);
  return invalid(`The definition is not valid: ${issuesText(errors)}`, { errors });
}
