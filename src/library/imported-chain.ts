/**
 * The versions that an imported conversation brings.
 *
 * BACKUP-7  A file grants nothing that its tenant's authors could not have: a model profile goes only to hosts, and with keys, that the
 *           deployer trusts. A task is deployed only where it equals the deployed one; any other is an author's, so that its
 *           requests reach only hosts that the deployer lists. Code is named and never brought.
 * BACKUP-8  What runs deployed code promises no more about repeating it than the code does today, and needs the approvals that it needs today.
 */
import { z } from "zod";
import type { ModelProfile } from "../model/profile.ts";
import type { PinnedHook, PinnedTool, ToolDefinition, VersionChain } from "../protocol/definitions.ts";
import type { PinnedNodeTask, PinnedWorkflow } from "../protocol/pinned-workflow.ts";
import type { PinnedAction, PinnedTask } from "../protocol/task-definition.ts";
import { DramatisError } from "../shared/errors.ts";
import { canonicalJson, type Json } from "../shared/json.ts";
import { validate } from "../shared/validation.ts";
import { agentTarget, taskTarget } from "./agent-tool.ts";
import { hostIssues } from "./author-tasks.ts";
import { type LibraryPorts, refuseUntrusted } from "./authoring.ts";
import type { DeployedCode } from "./deployed-code.ts";
import { strictest } from "./effects.ts";
import { type DefinitionKey, formatReference, parseReference } from "./reference.ts";
import { modelProfileSchema } from "./schemas.ts";
import { WORKFLOW_DEFAULTS, workflowTarget } from "./workflow-tool.ts";

const profilePin = z.looseObject({ id: z.string(), definition: modelProfileSchema });
const effect = z.enum(["pure", "idempotent", "once"]);
const place = { library: z.string(), id: z.string(), effect };
const action = z.looseObject({
  kind: z.string(),
  hosts: z.array(z.string()).exactOptional(),
  profile: modelProfileSchema.exactOptional(),
  library: z.string().exactOptional(),
  id: z.string().exactOptional(),
  effect: effect.exactOptional(),
});
const task = z.looseObject({
  library: z.string().exactOptional(),
  id: z.string(),
  version: z.int(),
  hash: z.string(),
  steps: z.array(z.looseObject({ ref: z.string(), action })),
  authored: z.literal(true).exactOptional(),
});
const workflow = z.looseObject({
  library: z.string(),
  id: z.string(),
  tasks: z.record(z.string(), z.looseObject({ ...place, task: task.exactOptional() })),
  get workflows() {
    return z.record(z.string(), workflow);
  },
});
const hook = z.looseObject({ ...place, task: task.exactOptional(), workflow: workflow.exactOptional() });
const chainSchema = z.looseObject({
  persona: z.looseObject({ id: z.string(), definition: z.looseObject({}) }),
  tools: z.array(
    z.looseObject({
      id: z.string(),
      definition: z.looseObject({ name: z.string(), effect }),
      task: task.exactOptional(),
    }),
  ),
  modelProfile: profilePin,
  fallbacks: z.array(profilePin).exactOptional(),
  compactionProfile: profilePin.exactOptional(),
  contextAssembly: hook.exactOptional(),
  memoryExtraction: hook.exactOptional(),
});

/** The libraries of the tenant, and the code of the deployment. */
export interface ImportPorts extends LibraryPorts {
  code: DeployedCode;
}

/**
 * Returns the versions of an agent as a conversation may keep them (BACKUP-7, BACKUP-8). `path` is the JSON pointer of the chain. Throws
 * `INVALID_INPUT` for hosts, keys and approvals that the tenant may not have, and `UNAVAILABLE`, retriable, while the database does not answer.
 */
export async function importedChain(ports: ImportPorts, given: unknown, path: string): Promise<VersionChain> {
  // SAFETY: the schema has checked everything that grants something; the rest is checked when the conversation is read.
  const chain = validate(chainSchema, given, path, "The versions of an agent") as unknown as VersionChain;
  const check = new ImportCheck(ports);
  for (const [name, profile] of profilesOf(chain)) check.profile(profile, `${path}/${name}`);
  const { contextAssembly, memoryExtraction } = chain;
  const tools: PinnedTool[] = [];
  for (const [index, tool] of chain.tools.entries())
    tools.push(await check.tool(tool, `${path}/tools/${index}`));
  return {
    ...chain,
    tools,
    ...(contextAssembly && { contextAssembly: await check.hook(contextAssembly, `${path}/contextAssembly`) }),
    ...(memoryExtraction && {
      memoryExtraction: await check.hook(memoryExtraction, `${path}/memoryExtraction`),
    }),
  };
}

function profilesOf({
  modelProfile,
  fallbacks = [],
  compactionProfile,
}: VersionChain): [string, ModelProfile][] {
  return [
    ["modelProfile", modelProfile.definition],
    ...fallbacks.map(({ definition }, index): [string, ModelProfile] => [`fallbacks/${index}`, definition]),
    ...(compactionProfile === undefined
      ? []
      : [["compactionProfile", compactionProfile.definition] satisfies [string, ModelProfile]]),
  ];
}

class ImportCheck {
  constructor(private readonly ports: ImportPorts) {}

  profile(profile: ModelProfile, path: string): void {
    refuseUntrusted(this.ports, profile, path);
  }

  async tool(tool: PinnedTool, path: string): Promise<PinnedTool> {
    const { library = "", id, definition, task: steps } = tool;
    const target = taskTarget(definition.target);
    const runs = this.#limits(target === undefined ? { library, id } : parseReference(target.task, library));
    const own = (await this.ports.code.definition("tool", { library, id }))?.definition;
    const needsApproval = own?.approval === "always" || runs.approval === "always";
    const isRemote = agentTarget(definition.target) ?? workflowTarget(definition.target);
    const effect = strictest(
      definition.effect,
      isRemote === undefined ? runs.effect : WORKFLOW_DEFAULTS.effect,
    );
    return {
      ...tool,
      definition: { ...definition, effect, ...(needsApproval ? { approval: "always" as const } : {}) },
      ...(steps && { task: await this.#task(steps, `${path}/task`) }),
    };
  }

  /** Returns the least that running deployed code asks for; nothing for a task of steps, and for what is not deployed. */
  #limits({ library, id }: DefinitionKey): Pick<ToolDefinition, "effect" | "approval"> {
    const { code } = this.ports;
    const { effect = "pure", approval } = code.toolCode(library, id)?.definition ?? {};
    return {
      effect,
      ...(approval === "always" || code.needsApproval(library, id) ? { approval: "always" } : {}),
    };
  }

  async hook(given: PinnedHook, path: string): Promise<PinnedHook> {
    const { task: steps, workflow: flow } = given;
    if (flow !== undefined) return { ...given, workflow: await this.#workflow(flow, `${path}/workflow`) };
    return this.#unattended(given, steps, path);
  }

  async #workflow(given: PinnedWorkflow, path: string): Promise<PinnedWorkflow> {
    const tasks: [string, PinnedNodeTask][] = [];
    for (const [ref, node] of Object.entries(given.tasks))
      tasks.push([ref, await this.#unattended(node, node.task, `${path}/tasks/${ref}`)]);
    const workflows: [string, PinnedWorkflow][] = [];
    for (const [ref, below] of Object.entries(given.workflows))
      workflows.push([ref, await this.#workflow(below, `${path}/workflows/${ref}`)]);
    return { ...given, tasks: Object.fromEntries(tasks), workflows: Object.fromEntries(workflows) };
  }

  /** Checks what runs where nobody could approve it. */
  async #unattended<Runs extends PinnedHook | PinnedNodeTask>(
    given: Runs,
    steps: PinnedTask | undefined,
    path: string,
  ): Promise<Runs> {
    const { library, id } = given;
    const { effect: ofCode, approval } = this.#limits({ library, id });
    if (approval === "always")
      throw wrong(
        path,
        `"${library}/${id}" needs a person's approval of each call, and nobody gives it here.`,
      );
    return {
      ...given,
      effect: strictest(given.effect, ofCode),
      ...(steps && { task: await this.#task(steps, `${path}/task`) }),
    };
  }

  /** Returns the task, as an author's unless it equals the deployed one. */
  async #task(given: PinnedTask, path: string): Promise<PinnedTask> {
    const { code, mayReach } = this.ports;
    const steps: PinnedTask["steps"][number][] = [];
    for (const [index, step] of given.steps.entries()) {
      const model = "profile" in step.action ? step.action.profile : undefined;
      if (model !== undefined) this.profile(model, `${path}/steps/${index}/action/profile`);
      steps.push({ ...step, action: await this.#action(step.action) });
    }
    const pinned = { ...given, steps };
    if (pinned.authored === true || (await this.#isDeployed(pinned))) return pinned;
    const [issue] = steps.flatMap((step, index) =>
      hostIssues(step.action, mayReach, `${path}/steps/${index}/action/hosts`),
    );
    if (issue === undefined) return { ...pinned, authored: true };
    const name = formatReference({ library: given.library ?? "", id: given.id });
    const isHere = given.library !== undefined && code.has(given.library);
    throw wrong(
      issue.path,
      `The task "${name}" is not that of the deployed code${isHere ? "" : ", which has no such library"}. ${issue.message}`,
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

function wrong(path: string, message: string): DramatisError {
  return new DramatisError("INVALID_INPUT", message, { errors: [{ path, message }] });
}
