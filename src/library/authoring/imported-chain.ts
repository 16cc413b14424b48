/**
 * The versions in an imported conversation.
 *
 * BACKUP-7  A file has only the rights of its tenant's authors. A model profile uses only hosts and keys that the
 *           deployer trusts. A task counts as deployed only if it equals the deployed task. Any other task is an
 *           author's task, so its requests reach only hosts that the deployer lists. A file names code and never
 *           contains it.
 * BACKUP-8  A definition over deployed code promises no more about repeated calls than the current code, and needs
 *           the current approvals.
 * BACKUP-14  All pinned versions have the form and the limits of posted definitions. This includes the actions of
 *            tasks and the workflows of hooks. So every imported conversation can be read and run.
 */
import type { z } from "zod";
import type { ModelProfile } from "../../model/profile.ts";
import { needOver, needsApproval } from "../../protocol/approval.ts";
import type { ToolEffect } from "../../protocol/definition-parts.ts";
import type {
  HookName,
  PinnedHook,
  PinnedTool,
  ToolDefinition,
  VersionChain,
} from "../../protocol/definitions.ts";
import type { PinnedNodeTask, PinnedWorkflow } from "../../protocol/pinned-workflow.ts";
import type { PinnedAction, PinnedStep, PinnedTask } from "../../protocol/task-definition.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError } from "../../shared/errors.ts";
import { canonicalJson, type Json } from "../../shared/json.ts";
import { invalidAt, validate } from "../../shared/validation.ts";
import { strictest } from "../definitions/effects.ts";
import { mcpServerOf, modelName } from "../definitions/mcp-reference.ts";
import { type DefinitionKey, formatReference, parseReference } from "../definitions/reference.ts";
import { isInlineSkill, skillsOf } from "../definitions/version-chain.ts";
import { checkHookFit } from "../hooks/hook-fit.ts";
import type { DeployedCode } from "../registry/deployed-code.ts";
import { refuseQuestions } from "../registry/pin-hook.ts";
import { checkPrices } from "../registry/prices.ts";
import { checkSize, refuseEqualNames } from "../registry/resolve.ts";
import { checkSkills } from "../skills/skill.ts";
import { refuseQuestion } from "../tasks/pin.ts";
import { agentTarget, taskTarget } from "../tools/agent-tool.ts";
import { a2aTarget } from "../tools/remote-agent.ts";
import { WORKFLOW_DEFAULTS, workflowTarget } from "../tools/workflow-tool.ts";
import { hostIssues } from "./author-tasks.ts";
import { type LibraryPorts, refuseUntrusted } from "./authoring.ts";
import { below, CHAIN, checkedPinnedTask, checkedPinnedWorkflow } from "./imported-parts.ts";
import { chainSchema } from "./imported-schemas.ts";

export interface ImportPorts extends LibraryPorts {
  code: DeployedCode;
}

/**
 * Returns the checked versions of an agent for a conversation (BACKUP-7, BACKUP-8, BACKUP-14). `path` is the JSON
 * pointer of the chain. Throws `INVALID_INPUT` for content that an author cannot post, and for hosts, keys and
 * approvals that the tenant may not use. Throws `UNAVAILABLE`, retriable, while the database does not answer.
 */
export async function importedChain(ports: ImportPorts, given: unknown, path: string): Promise<VersionChain> {
  const chain = validate(chainSchema, given, path, CHAIN);
  const check = new ImportCheck(ports);
  for (const [name, profile] of profilesOf(chain)) check.profile(profile, `${path}/${name}`);
  const tools: PinnedTool[] = [];
  for (const [index, tool] of chain.tools.entries())
    tools.push(await check.tool(tool, `${path}/tools/${index}`));
  const hook = async (name: HookName) => {
    const pinned = chain[name];
    return pinned && (await check.hook(name, pinned, `${path}/${name}`));
  };
  const hooks = {
    contextAssembly: await hook("contextAssembly"),
    memoryExtraction: await hook("memoryExtraction"),
  };
  const { contextAssembly: _, memoryExtraction: __, ...others } = chain;
  const whole: VersionChain = { ...others, tools, ...defined(hooks) };
  const { budget } = chain.persona.definition;
  await below(`${path}/persona/definition`, () => checkSkills(skillsOf(whole) ?? []));
  await below(path, () => {
    refuseEqualNames(tools);
    checkSize(whole);
    checkPinnedSkills(whole);
    if (budget !== undefined) checkPrices(whole, budget);
  });
  return whole;
}

/** Throws `INVALID_INPUT` unless each reference to a skill has a pinned skill. */
function checkPinnedSkills(chain: VersionChain): void {
  const { skills = [] } = chain.persona.definition;
  const count = skills.filter((skill) => !isInlineSkill(skill)).length;
  if (count === (chain.skills?.length ?? 0)) return;
  throw invalidAt(
    "/skills",
    `Must have ${count} skills: one for each reference in the skills of the persona.`,
  );
}

type GivenChain = z.output<typeof chainSchema>;
type GivenTool = GivenChain["tools"][number];
type GivenHook = NonNullable<GivenChain[HookName]>;
/** A task or a workflow that runs without a person who could approve it. */
type Unattended = Omit<PinnedNodeTask, "task"> & { task?: unknown };

function profilesOf({ modelProfile, fallbacks = [], ...others }: GivenChain): [string, ModelProfile][] {
  return [
    ["modelProfile", modelProfile.definition],
    ...fallbacks.map(({ definition }, index): [string, ModelProfile] => [`fallbacks/${index}`, definition]),
    ...(["compactionProfile", "titleProfile"] as const).flatMap((name): [string, ModelProfile][] => {
      const profile = others[name];
      return profile === undefined ? [] : [[name, profile.definition]];
    }),
  ];
}

class ImportCheck {
  constructor(private readonly ports: ImportPorts) {}

  profile(profile: ModelProfile, path: string): void {
    refuseUntrusted(this.ports, profile, path);
  }

  async tool({ task: steps, ...tool }: GivenTool, path: string): Promise<PinnedTool> {
    const { library = "", id, definition } = tool;
    const pinned = steps === undefined ? undefined : await this.#task(steps, `${path}/task`);
    const target = taskTarget(definition.target);
    const runs = this.#limits(target === undefined ? { library, id } : parseReference(target.task, library));
    const own = (await this.ports.code.definition("tool", { library, id }))?.definition;
    const approval = needOver(own?.approval, needOver(runs.approval, definition.approval));
    const isRemote =
      agentTarget(definition.target) ?? workflowTarget(definition.target) ?? a2aTarget(definition.target);
    const ofTarget = isRemote === undefined ? runs.effect : WORKFLOW_DEFAULTS.effect;
    // The tenant has accepted no description of the file, so the versions of the file mean nothing here.
    const server = mcpServerOf(library);
    // Policies decide by this name.
    if (server !== undefined && definition.name !== modelName(server, id))
      throw invalidAt(`${path}/definition/name`, `This tool must have the name "${modelName(server, id)}".`);
    const known = server !== undefined ? "once" : (pinned?.effect ?? "pure");
    const effect = strictest(definition.effect, strictest(ofTarget, known));
    return {
      ...tool,
      definition: { ...definition, effect, ...defined({ approval }) },
      ...(pinned && { task: pinned.task }),
    };
  }

  /** Returns the minimum requirements of deployed code. Empty for a task of steps, and for a definition that is not deployed. */
  #limits({ library, id }: DefinitionKey): Pick<ToolDefinition, "effect" | "approval"> {
    const { code } = this.ports;
    const { effect = "pure", approval } = code.toolCode(library, id)?.definition ?? {};
    return {
      effect,
      ...defined({ approval: approval ?? code.approvalOf(library, id) }),
    };
  }

  async hook(name: HookName, { workflow: flow, ...given }: GivenHook, path: string): Promise<PinnedHook> {
    if (flow !== undefined) {
      const workflow = await this.#workflow(flow, `${path}/workflow`);
      const { task: _, ...hook } = given;
      await below(`${path}/workflow`, () => {
        refuseQuestions(workflow);
        checkHookFit(name, formatReference(workflow), workflow.definition);
      });
      return { ...hook, workflow };
    }
    const hook = await this.#unattended(given, path);
    await below(`${path}/task`, () => refuseQuestion(hook));
    return hook;
  }

  async #workflow(given: unknown, path: string, level = 0): Promise<PinnedWorkflow> {
    const { tasks, workflows, ...flow } = checkedPinnedWorkflow(given, path, level);
    const pinnedTasks: [string, PinnedNodeTask][] = [];
    for (const [ref, node] of tasks)
      pinnedTasks.push([ref, await this.#unattended(node, `${path}/tasks/${ref}`)]);
    const pinnedWorkflows: [string, PinnedWorkflow][] = [];
    for (const [ref, inner] of workflows)
      pinnedWorkflows.push([ref, await this.#workflow(inner, `${path}/workflows/${ref}`, level + 1)]);
    return {
      ...flow,
      tasks: Object.fromEntries(pinnedTasks),
      workflows: Object.fromEntries(pinnedWorkflows),
    };
  }

  async #unattended({ task: steps, ...given }: Unattended, path: string): Promise<PinnedNodeTask> {
    const { library, id } = given;
    const { effect: ofCode, approval } = this.#limits({ library, id });
    if (needsApproval(approval))
      throw invalidAt(
        path,
        `"${library}/${id}" needs a person's approval of each call, which is not available here.`,
      );
    const pinned = steps === undefined ? undefined : await this.#task(steps, `${path}/task`);
    const effect = strictest(given.effect, strictest(ofCode, pinned?.effect ?? "pure"));
    return { ...given, effect, ...(pinned && { task: pinned.task }) };
  }

  /** Returns the task, as an author's unless it equals the deployed one, and its effect. */
  async #task(value: unknown, path: string): Promise<{ task: PinnedTask; effect: ToolEffect }> {
    const { task: given, effect } = await checkedPinnedTask(value, path);
    const steps: PinnedTask["steps"][number][] = [];
    for (const [index, step] of given.steps.entries()) {
      const model = "profile" in step.action ? step.action.profile : undefined;
      if (model !== undefined) this.profile(model, `${path}/steps/${index}/action/profile`);
      steps.push(onceOnly({ ...step, action: await this.#action(step.action) }));
    }
    const effects = steps.map(({ action }) => (action.kind === "code" ? action.effect : "pure"));
    const whole = effects.reduce(strictest, effect);
    return { task: await this.#owned({ ...given, steps }, path), effect: whole };
  }

  /** Returns a task as an author's, unless it equals the deployed one. */
  async #owned(given: PinnedTask, path: string): Promise<PinnedTask> {
    const { code, mayReach } = this.ports;
    if (given.authored === true || (await this.#isDeployed(given))) return given;
    const [issue] = given.steps.flatMap((step, index) =>
      hostIssues(step.action, mayReach, `${path}/steps/${index}/action/hosts`),
    );
    if (issue === undefined) return { ...given, authored: true };
    const name = formatReference({ library: given.library ?? "", id: given.id });
    const isHere = given.library !== undefined && code.has(given.library);
    throw invalidAt(
      issue.path,
      `The task "${name}" differs from the deployed task${isHere ? "" : ": its library is not deployed"}. ${issue.message}`,
    );
  }

  async #action(given: PinnedAction): Promise<PinnedAction> {
    if (given.kind !== "code") return given;
    const ofCode = (await this.ports.code.definition("action", given))?.definition;
    return { ...given, effect: strictest(given.effect, ofCode?.kind === "code" ? ofCode.effect : "pure") };
  }

  async #isDeployed({ library, id, version, hash, steps }: PinnedTask): Promise<boolean> {
    const { registry, code } = this.ports;
    if (library === undefined || !code.has(library)) return false;
    const reference = { library, id, ...(version === 0 ? {} : { version }) };
    const known = await registry.nodeTask(reference).catch(unlessMissing);
    return known?.task?.hash === hash && withoutModels(known.task.steps) === withoutModels(steps);
  }
}

/** Returns a step without retries if its action may run only once (BACKUP-8). */
function onceOnly({ retry, onFailure, ...step }: PinnedStep): PinnedStep {
  const isOnce = step.action.kind === "code" && step.action.effect === "once";
  return {
    ...step,
    ...defined({
      retry: isOnce ? undefined : retry,
      onFailure: isOnce && onFailure === "retry" ? undefined : onFailure,
    }),
  };
}

/** Returns steps in one form, without their models, which the persona or the deployment may have given. */
function withoutModels(steps: PinnedTask["steps"]): string {
  const plain = steps.map(({ action: { ...rest }, ...step }) => {
    if ("profile" in rest) delete rest.profile;
    return { ...step, action: rest };
  });
  // SAFETY: pinned steps hold only JSON.
  return canonicalJson(plain as unknown as Json);
}

function unlessMissing(error: unknown): undefined {
  if (error instanceof DramatisError && !error.retriable) return undefined;
  throw error;
}
