/**
 * The registry of a tenant: the deployed libraries and the libraries by the tenant's authors. It resolves references
 * for pinning, and serves the API of libraries.
 *
 * REG-3  For a deployed definition, a reference without a version means the content of the deployed code, even if
 *        other deployments left higher versions. For other definitions it means the highest version. A reference with
 *        a version means that version.
 * REG-4  Only the tenant sees the libraries of its authors. Every tenant sees the deployed libraries, which take
 *        precedence.
 * REG-5  Deployed definitions can be pinned while the database does not answer. They then have version 0, which means
 *        that the number was unknown. The hash identifies the content.
 * REG-6  A tool never promises more than its deployed code about repeated calls and reachable hosts, even if an older
 *        version did.
 * REG-9  A tool over a workflow is pinned with the version of the workflow: later versions do not reach the
 *        conversation.
 * LIBAPI-1  A tenant sees the deployed libraries and its own, and no library of another tenant.
 * LIBAPI-2  A library belongs to the author of its first definition. Only this author and administrators add to it.
 *           Only a deployment changes deployed libraries.
 * LIBAPI-3  A refused request has no effect. It does not even create an empty library.
 * LIBAPI-4  Lists ascend by creation, deployed items first. They continue after a cursor without loss or repetition.
 * LIBAPI-5  The id of a new library is not confusable with another library id that its tenant sees. Ids that differ
 *           only in case, or in `_` for `-`, are refused.
 */
import type { ModelProfile } from "../../model/profile.ts";
import { needOver } from "../../protocol/approval.ts";
import type { Persona, Pin, PinnedTool, ToolDefinition, WorkflowTarget } from "../../protocol/definitions.ts";
import type { ActionDefinition, PinnedTask, TaskDefinition } from "../../protocol/task-definition.ts";
import type { WorkflowDefinition } from "../../protocol/workflow-definition.ts";
import { defined } from "../../shared/defined.ts";
import { conflict, forbidden, hasCode, invalid, notFound, unavailable } from "../../shared/errors.ts";
import type { JsonObject } from "../../shared/json.ts";
import { listIds } from "../../shared/known-ids.ts";
import { listPage, listRange, type Page, type PageOptions } from "../../shared/page.ts";
import { mayAuthor, type Principal } from "../../shared/principal.ts";
import { contentHash, type DefinitionKind, type DefinitionTypes } from "../definitions/definition.ts";
import { strictest } from "../definitions/effects.ts";
import {
  type DefinitionKey,
  formatReference,
  type LibraryReference,
  parseReference,
} from "../definitions/reference.ts";
import { hostsOf, pinTask, refuseQuestion, type TaskParts, type TaskSource } from "../tasks/pin.ts";
import { attemptsOf } from "../tasks/task-schema.ts";
import { agentTarget, taskTarget } from "../tools/agent-tool.ts";
import { a2aTarget } from "../tools/remote-agent.ts";
import { WORKFLOW_DEFAULTS, workflowTarget } from "../tools/workflow-tool.ts";
import type {
  DefinitionSource,
  DefinitionStore,
  DefinitionVersion,
  LibraryView,
} from "./definition-source.ts";
import type { DeployedCode, DeployedFunction } from "./deployed-code.ts";
import { DeployedDefinitions } from "./deployed-definitions.ts";
import { type McpSource, NO_MCP } from "./mcp-source.ts";
import { MissingDefinitions } from "./missing-definitions.ts";

/** A definition that was found, and its exact origin. */
export type Resolved<Definition> = Pin & { library: string; definition: Definition };

/** The target of a hook or a tool, and the fields that a tool over it inherits. */
export interface Runnable {
  library: string;
  id: string;
  definition: DeployedFunction["definition"];
  /** The schema of the result; absent if it is not known. */
  outputSchema?: JsonObject;
  /** The steps of a task; absent if it runs code. */
  task?: PinnedTask;
}

export interface RegistryStores {
  /** Definitions of `CODE_TENANT`. */
  deployed: DefinitionStore;
  /** Definitions of the registry's tenant. */
  authored: DefinitionStore;
}

/** Make one per request. Methods throw `UNAVAILABLE`, retriable, while the database does not answer. */
export class Registry {
  readonly #code: DeployedCode;
  readonly #deployed: DefinitionSource;
  readonly #authored: DefinitionStore | null;
  readonly #absent: MissingDefinitions;

  /** Cache of found definitions by kind and reference, so that each is read once. Callers get copies (REG-2). */
  readonly #kept = new Map<string, Promise<DefinitionVersion | null>>();

  /** Without stores, the registry has only the deployed definitions, each with version 1. */
  constructor(
    code: DeployedCode,
    stores?: RegistryStores,
    /** The MCP servers of the tenant. */
    readonly mcp: McpSource = NO_MCP,
  ) {
    this.#code = code;
    this.#deployed = new DeployedDefinitions(code, stores?.deployed ?? null);
    this.#authored = stores?.authored ?? null;
    this.#absent = new MissingDefinitions(code, this.#authored);
  }

  /** Resolves a reference for pinning. Throws `NOT_FOUND`. */
  persona(reference: LibraryReference): Promise<Resolved<Persona>> {
    return this.#copy("persona", reference);
  }

  /**
   * Returns a pinned tool like `persona`, with the steps of its task. The stricter effect of the task and the
   * deployed code applies (REG-6).
   */
  async tool(reference: LibraryReference): Promise<PinnedTool & { library: string }> {
    const { definition, ...pin } = await this.#copy("tool", reference);
    if ((agentTarget(definition.target) ?? a2aTarget(definition.target)) !== undefined)
      return { ...pin, definition };
    const flow = workflowTarget(definition.target);
    if (flow !== undefined)
      return { ...pin, definition: await this.#overWorkflow(definition, flow, pin.library) };
    const target = taskTarget(definition.target);
    const { library, id } = reference;
    const runs = await this.#found(
      target === undefined ? { library, id } : parseReference(target.task, pin.library),
    );
    refuseQuestion(runs);
    const effect = strictest(definition.effect, runs?.definition.effect ?? "pure");
    // A deployed tool over a task decides for itself (APPROVE-9).
    const isBound = target === undefined || !this.#code.has(pin.library);
    const approval = isBound ? needOver(runs?.definition.approval, definition.approval) : definition.approval;
    // Use the hosts that the code declares today (REG-6).
    const { hosts: _declared, ...rest } = definition;
    const hosts = runs === undefined ? _declared : runs.definition.hosts;
    const changed = { ...rest, effect, ...defined({ approval, hosts }) };
    return { ...pin, definition: changed, ...defined({ task: runs?.task }) };
  }

  /**
   * Returns a tool with the version of its workflow. Default: the latest version (REG-9). It declares no hosts,
   * because the hosts of a run are unknown.
   */
  async #overWorkflow(
    { hosts: _hosts, ...definition }: ToolDefinition,
    target: WorkflowTarget,
    home: string,
  ): Promise<ToolDefinition> {
    const { library, id, version } = await this.#resolve("workflow", parseReference(target.workflow, home));
    // The number is unknown while the database does not answer (REG-5): the run then begins with the latest version.
    const workflow = formatReference({ library, id, ...(version === 0 ? {} : { version }) });
    return {
      ...structuredClone(definition),
      effect: strictest(definition.effect, WORKFLOW_DEFAULTS.effect),
      target: { workflow },
    };
  }

  /** As `persona`. */
  modelProfile(reference: LibraryReference): Promise<Resolved<ModelProfile>> {
    return this.#copy("model-profile", reference);
  }

  /** As `persona`. */
  workflow(reference: LibraryReference): Promise<Resolved<WorkflowDefinition>> {
    return this.#copy("workflow", reference);
  }

  /** As `persona`. */
  skill(reference: LibraryReference): Promise<Resolved<DefinitionTypes["skill"]>> {
    return this.#copy("skill", reference);
  }

  /**
   * Returns the target of a hook or a tool: a task, of the deployed code or of the tenant, or the code of a deployed tool. Throws `NOT_FOUND`,
   * and `INVALID_INPUT` for a version of code.
   */
  async runnable(reference: LibraryReference): Promise<Runnable> {
    const found = await this.nodeTask(reference);
    refuseQuestion(found);
    return found;
  }

  /** As `runnable`, for a node of a workflow: its task may also ask a person. */
  async nodeTask(reference: LibraryReference): Promise<Runnable> {
    return (await this.#found(reference)) ?? this.#refuseRunnable(reference);
  }

  async #refuseRunnable(reference: LibraryReference): Promise<never> {
    const { library, id } = reference;
    const name = formatReference(reference);
    if (!this.#code.has(library)) throw await this.#absent.definition("task", reference);
    const known = listIds(id, this.#code.codeIds(library));
    throw notFound(`There is no deployed task or tool "${name}". Library "${library}" has: ${known}.`);
  }

  /** Returns the schemas of `runnable` without reading a task's references. Throws like `runnable`. */
  async schemas(reference: LibraryReference): Promise<Pick<TaskDefinition, "inputSchema" | "outputSchema">> {
    const { task, code } = (await this.#codeOrTask(reference)) ?? (await this.#refuseRunnable(reference));
    const { inputSchema } = (task ?? code).definition;
    const outputSchema = task === undefined ? code.outputSchema : task.definition.outputSchema;
    return structuredClone({ inputSchema, ...defined({ outputSchema }) });
  }

  async #found(reference: LibraryReference): Promise<Runnable | undefined> {
    const { task, code } = (await this.#codeOrTask(reference)) ?? {};
    return task === undefined ? code : this.pinned(task);
  }

  async #codeOrTask(
    reference: LibraryReference,
  ): Promise<{ code: Runnable; task?: undefined } | { code?: undefined; task: TaskSource } | undefined> {
    const { library, id, version } = reference;
    const code = this.#code.toolCode(library, id);
    if (code !== undefined) {
      const { outputSchema } = code;
      if (version === undefined)
        return {
          code: { library, id: code.id, definition: code.definition, ...defined({ outputSchema }) },
        };
      const message = `"${formatReference(reference)}" must not name a version: the deployed code runs.`;
      throw invalid(message);
    }
    if (this.#code.has(library) && !this.#code.ids("task", library).includes(id)) return undefined;
    const task = await this.#resolve("task", reference).catch((error: unknown) => {
      if (hasCode(error, "NOT_FOUND")) return undefined;
      throw error;
    });
    return task && { task };
  }

  /** Returns a task of steps with its resolved references. Throws `INVALID_INPUT` with the places of missing definitions. */
  async pinned(source: TaskSource): Promise<Runnable & { task: PinnedTask }> {
    const { library, id, definition } = source;
    const parts: TaskParts = {
      action: (reference) => this.#action(reference),
      prompt: (reference) => this.#resolve("prompt", reference),
      modelProfile: (reference) => this.#resolve("model-profile", reference),
    };
    // One copy of all: parts that several steps name stay one object.
    const { task, effect } = structuredClone(await pinTask(parts, source));
    const { inputSchema, outputSchema } = task;
    const { timeoutMs } = definition;
    const retry = attemptsOf(definition.retry);
    const approval = this.#code.approvalOf(library, id);
    return {
      library,
      id,
      definition: { inputSchema, timeoutMs, effect, ...defined({ retry, approval, hosts: hostsOf(task) }) },
      ...defined({ outputSchema }),
      task: this.#code.has(library) ? task : { ...task, authored: true },
    };
  }

  /** Returns an action. For a function, the stricter effect of the action and the deployed code applies (REG-6). */
  async #action(reference: LibraryReference): Promise<Resolved<ActionDefinition>> {
    const { definition, ...pin } = await this.#resolve("action", reference);
    if (definition.kind !== "code") return { ...pin, definition };
    const deployed = (await this.#code.definition("action", reference))?.definition;
    const effect = strictest(definition.effect, deployed?.kind === "code" ? deployed.effect : "pure");
    return { ...pin, definition: { ...definition, effect } };
  }

  /** Lists the deployed libraries, then the tenant's libraries. Throws `INVALID_INPUT` for an invalid cursor. */
  async libraries(options: PageOptions = {}): Promise<Page<LibraryView>> {
    const range = listRange(options);
    const { order, limit } = range;
    const deployed = await this.#deployed.libraries(range);
    if (order === "asc" && deployed.length > limit) return listPage(deployed, limit);
    // Deployed libraries hide authored libraries with the same ids, so at most that many rows are dropped.
    const rows = { ...range, limit: limit + this.#code.libraryIds.length };
    const authored = (await this.#authored?.libraries(rows)) ?? [];
    const visible = authored.filter(({ item }) => !this.#code.has(item.id));
    return listPage(order === "asc" ? [...deployed, ...visible] : [...visible, ...deployed], limit);
  }

  /** Throws `NOT_FOUND`. */
  async library(id: string): Promise<LibraryView> {
    const found = await this.#source(id).library(id);
    if (found === null) throw this.#absent.library(id);
    return found;
  }

  /** Lists the latest version of each definition. Throws `NOT_FOUND` if the library does not exist. */
  async list<Kind extends DefinitionKind>(
    kind: Kind,
    library: string,
    options: PageOptions = {},
  ): Promise<Page<DefinitionVersion<Kind>>> {
    await this.library(library);
    return this.#source(library).list(kind, library, options);
  }

  /** Returns a version, or the latest. Throws `NOT_FOUND`. */
  async find<Kind extends DefinitionKind>(
    kind: Kind,
    reference: LibraryReference,
  ): Promise<DefinitionVersion<Kind>> {
    return structuredClone(await this.#find(kind, reference));
  }

  /** Reports whether a persona does not exist. `false` while the database does not answer. */
  async lacksPersona(reference: LibraryReference): Promise<boolean> {
    return this.#find("persona", reference).then(
      () => false,
      (error: unknown) => hasCode(error, "NOT_FOUND"),
    );
  }

  /** Lists all versions. Throws `NOT_FOUND` if the definition does not exist. */
  async versions(
    kind: DefinitionKind,
    { library, id }: DefinitionKey,
    options: PageOptions = {},
  ): Promise<Page<DefinitionVersion>> {
    const page = await this.#source(library).versions(kind, { library, id }, options);
    // A page after the last version is empty too.
    if (page.items.length === 0) await this.find(kind, { library, id, version: 1 });
    return page;
  }

  /**
   * Throws `FORBIDDEN` without the role of an author or administrator, `CONFLICT` if the library is deployed,
   * `UNAVAILABLE` without a database.
   */
  checkWriter(principal: Principal, library: string): void {
    this.#storeFor(principal, library);
  }

  /** Returns the version with this content. If it does not exist, adds it. Throws like `checkWriter` and the store. */
  async add<Kind extends DefinitionKind>(
    principal: Principal,
    kind: Kind,
    { library, id }: DefinitionKey,
    definition: DefinitionTypes[Kind],
  ): Promise<{ version: DefinitionVersion<Kind>; created: boolean }> {
    const store = this.#storeFor(principal, library);
    const deployed = this.#code.similarTo(library);
    if (deployed !== undefined && (await store.library(library)) === null)
      throw conflict(
        `The deployed library "${deployed}" has almost the same id as "${library}". Choose a different one.`,
      );
    const hash = await contentHash(definition);
    const added = await store.add({ kind, library, id, hash, definition }, principal);
    this.#kept.clear();
    return added;
  }

  /** Returns the caller's own copy (REG-2). */
  async #copy<Kind extends DefinitionKind>(
    kind: Kind,
    reference: LibraryReference,
  ): Promise<Resolved<DefinitionTypes[Kind]>> {
    return structuredClone(await this.#resolve(kind, reference));
  }

  /** As `find`. Callers must not change the result. */
  async #find<Kind extends DefinitionKind>(
    kind: Kind,
    reference: LibraryReference,
  ): Promise<DefinitionVersion<Kind>> {
    const key = `${kind} ${formatReference(reference)}`;
    const kept = this.#kept.get(key) ?? this.#source(reference.library).find(kind, reference);
    this.#kept.set(key, kept);
    const found = await kept.catch((error: unknown) => {
      // A database that did not answer may answer the next time.
      if (this.#kept.get(key) === kept) this.#kept.delete(key);
      throw error;
    });
    if (found === null) throw await this.#absent.definition(kind, reference);
    // SAFETY: the key has the kind.
    return found as DefinitionVersion<Kind>;
  }

  async #resolve<Kind extends DefinitionKind>(
    kind: Kind,
    reference: LibraryReference,
  ): Promise<Resolved<DefinitionTypes[Kind]>> {
    const found = await this.#find(kind, reference).catch(async (error: unknown) => {
      const isAway = hasCode(error, "UNAVAILABLE");
      const deployed = await this.#code.definition(kind, reference);
      if (!isAway || reference.version !== undefined || deployed === undefined) throw error;
      return { ...deployed, version: 0 };
    });
    const { library, id, version, hash, definition } = found;
    return { library, id, version, hash, definition };
  }

  #storeFor(principal: Principal, library: string): DefinitionStore {
    if (!mayAuthor(principal)) throw forbidden("Only authors and administrators may add to libraries.");
    if (this.#code.has(library))
      throw conflict(
        `The library "${library}" is part of the deployed code. Deploy a change of it, or choose another id.`,
      );
    if (this.#authored !== null) return this.#authored;
    throw unavailable("Libraries by API need the D1 binding `DB`. Add it to the Worker's configuration.");
  }

  #source(library: string): DefinitionSource {
    if (this.#code.has(library)) return this.#deployed;
    if (this.#authored !== null) return this.#authored;
    throw this.#absent.library(library);
  }
}
