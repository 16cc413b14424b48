/**
 * The libraries of the deployed code: definitions, and the code of the tools.
 *
 * REG-1  An id of a kind names one definition. This file refuses duplicate libraries. `defineLibrary` refuses
 *        duplicates in a library.
 * REG-2  Each caller gets its own copy of a definition.
 * REG-10  The platform's own library is always deployed. Its id is reserved, and no list shows it. Its definitions
 *         have version 1. The hash identifies their content.
 * APPROVE-9  If a deployed tool over a task needs an approval of each call, the tools of authors over it need it too,
 *            and hooks cannot run it. The rule of the deployed tool names who may answer. A tool of an author may
 *            have a rule only if the deployed tool has no rule.
 * PUBLISH-1  The first request of an isolate that needs a version number reads the numbers of all deployed
 *            definitions with one statement. It writes only the definitions that are missing.
 * PUBLISH-2  Equal content keeps its version number. Code that is rolled back has its old numbers again.
 */
import type { ModelProfile } from "../../model/profile.ts";
import { needOver, needsApproval } from "../../protocol/approval.ts";
import type { ApprovalNeed } from "../../protocol/approval-schema.ts";
import type { Persona, Skill, ToolDefinition } from "../../protocol/definitions.ts";
import { defined } from "../../shared/defined.ts";
import { invalid } from "../../shared/errors.ts";
import type { JsonObject } from "../../shared/json.ts";
import { foldedId } from "../../shared/known-ids.ts";
import { builtIn } from "../built-in/built-in.ts";
import type { Defined, Library, Tool } from "../define/define.ts";
import {
  contentHash,
  DEFINITION_KINDS,
  type DefinitionKind,
  type DefinitionTypes,
} from "../definitions/definition.ts";
import { type DefinitionKey, formatReference, parseReference } from "../definitions/reference.ts";
import { completePersona } from "../personas/persona.ts";
import { skillId } from "../skills/skill.ts";
import type { LibraryAction, Prompt, Task, Workflow } from "../tasks/built.ts";
import { attemptsOf } from "../tasks/task-schema.ts";
import { taskTarget } from "../tools/agent-tool.ts";
import type { Run } from "../tools/tool.ts";
import { checkNesting, type Source } from "../workflows/nesting.ts";
import type { DefinitionStore, PublishedVersion, UnversionedDefinition } from "./definition-source.ts";

/** A function of the deployed code, behind the checks of its input and output. */
export interface DeployedFunction {
  id: string;
  /** The fields that a tool over it inherits. */
  definition: Pick<ToolDefinition, "inputSchema" | "effect" | "timeoutMs"> &
    Partial<Omit<ToolDefinition, "name" | "description">>;
  /** The schema of the result; absent if it is not known. */
  outputSchema?: JsonObject;
  run: Run;
}

/** The executable half of the deployed tools, tasks and actions. */
export interface ToolCodes {
  /** Returns `undefined` if this deployment has no such tool or task of a function, or an agent answers it. */
  toolCode(library: string, id: string): DeployedFunction | undefined;
  /** Returns `undefined` if this deployment has no such action of a function. */
  actionCode(library: string, id: string): Run | undefined;
}

interface Contents {
  persona: readonly Defined<Persona>[];
  tool: readonly Tool[];
  "model-profile": readonly Defined<ModelProfile>[];
  task: readonly Task[];
  action: readonly LibraryAction[];
  prompt: readonly Prompt[];
  workflow: readonly Workflow[];
  skill: readonly Defined<Skill>[];
}

/** Version numbers by `nameOf`. */
type PublishedVersions = ReadonlyMap<string, PublishedVersion | undefined>;

/** Make one per isolate. It keeps results, not promises: a request must not await a promise of another request. */
export class DeployedCode implements ToolCodes {
  readonly #libraries = new Map<string, Contents>();
  /** The approvals that deployed tools over tasks need, by the reference of the task. */
  readonly #guarded = new Map<string, ApprovalNeed>();
  readonly #hashes = new WeakMap<object, string>();
  #published: PublishedVersions | undefined;

  /**
   * Throws `INVALID_INPUT` if `libraries` is not an array of libraries, if two libraries have the same id, or if
   * workflows nest wrongly over several libraries (NEST-3).
   */
  constructor(libraries: readonly Library[]) {
    const given: unknown = libraries;
    if (!Array.isArray(given)) throw invalid("`libraries` must be an array. Write `libraries: [library]`.");
    for (const [index, library] of libraries.entries()) {
      checkMade(library, index);
      const { id } = library;
      if (id === builtIn.id) {
        const message = `The library "${id}" is the platform's own. Rename \`libraries[${index}]\`.`;
        throw invalid(message);
      }
      if (this.#libraries.has(id)) throw invalid(`Two libraries have the id "${id}". Rename one of them.`);
      this.#libraries.set(id, contentsOf(library));
    }
    checkNesting(
      this.libraryIds.flatMap((library) => this.#sources(library)),
      ({ library, id }) => this.#sources(library).find((workflow) => workflow.id === id),
    );
    for (const { id: home, tools } of libraries)
      for (const { definition } of tools) this.#guard(home, definition);
  }

  /** Ids of the libraries, in the order of `dramatis()`. */
  get libraryIds(): string[] {
    return [...this.#libraries.keys()];
  }

  has(library: string): boolean {
    return this.#contents(library) !== undefined;
  }

  /** Returns the deployed library with an almost equal id, if any (LIBAPI-5). */
  similarTo(library: string): string | undefined {
    return [...this.libraryIds, builtIn.id].find((other) => foldedId(other) === foldedId(library));
  }

  #contents(library: string): Contents | undefined {
    return library === builtIn.id ? BUILT_IN : this.#libraries.get(library);
  }

  /** Returns the ids of a library's definitions, in the order of `defineLibrary`. */
  ids(kind: DefinitionKind, library: string): string[] {
    return this.#of(kind, library).map(({ id }) => id);
  }

  /** Returns the ids of the code that hooks and tools by API may run. */
  codeIds(library: string): string[] {
    const { task = [], tool = [] } = this.#contents(library) ?? {};
    return [...task, ...tool].map(({ id }) => id);
  }

  toolCode(library: string, id: string): DeployedFunction | undefined {
    const contents = this.#contents(library);
    const task = contents?.task.find((candidate) => candidate.id === id);
    if (task !== undefined) return functionOf(task, this.approvalOf(library, id));
    const tool = contents?.tool.find((candidate) => candidate.id === id);
    return tool?.definition.target === undefined ? tool : undefined;
  }

  /** Notes the approval that a deployed tool over a task needs. The first rule counts if several tools run the task. */
  #guard(home: string, { approval, target }: ToolDefinition): void {
    const named = taskTarget(target);
    if (named === undefined || !needsApproval(approval)) return;
    const { library, id } = parseReference(named.task, home);
    const task = formatReference({ library, id });
    this.#guarded.set(task, needOver(this.#guarded.get(task), approval) ?? approval);
  }

  /** Returns the approval that a deployed tool over a task needs (APPROVE-9). */
  approvalOf(library: string, task: string): ApprovalNeed | undefined {
    return this.#guarded.get(formatReference({ library, id: task }));
  }

  actionCode(library: string, id: string): Run | undefined {
    return this.#contents(library)?.action.find((action) => action.id === id)?.run;
  }

  async definition<Kind extends DefinitionKind>(
    kind: Kind,
    { library, id }: DefinitionKey,
  ): Promise<UnversionedDefinition<Kind> | undefined> {
    const found = this.#of(kind, library).find((candidate) => candidate.id === id);
    return found === undefined ? undefined : this.#hashed(kind, library, found);
  }

  /** Returns a library's definitions, in the order of `defineLibrary`. */
  definitions<Kind extends DefinitionKind>(
    kind: Kind,
    library: string,
  ): Promise<UnversionedDefinition<Kind>[]> {
    return Promise.all(this.#of(kind, library).map((found) => this.#hashed(kind, library, found)));
  }

  async published(store: DefinitionStore): Promise<PublishedVersions> {
    if (this.#published !== undefined) return this.#published;
    const definitions = await this.#all();
    const versions = await store.publish(definitions);
    this.#published = new Map(definitions.map((definition, index) => [nameOf(definition), versions[index]]));
    return this.#published;
  }

  async #all(): Promise<UnversionedDefinition[]> {
    const lists = this.libraryIds.flatMap((library) =>
      DEFINITION_KINDS.map((kind) => this.definitions(kind, library)),
    );
    return (await Promise.all(lists)).flat();
  }

  #of<Kind extends DefinitionKind>(kind: Kind, library: string): readonly Defined<DefinitionTypes[Kind]>[] {
    const contents: { [Key in DefinitionKind]: readonly Defined<DefinitionTypes[Key]>[] } | undefined =
      this.#contents(library);
    return contents?.[kind] ?? [];
  }

  #sources(library: string): Source[] {
    return this.#of("workflow", library).map(({ id, definition }) => ({ library, id, definition }));
  }

  async #hashed<Kind extends DefinitionKind>(
    kind: Kind,
    library: string,
    { id, definition }: Defined<DefinitionTypes[Kind]>,
  ): Promise<UnversionedDefinition<Kind>> {
    const hash = this.#hashes.get(definition) ?? (await contentHash(definition));
    this.#hashes.set(definition, hash);
    return { kind, library, id, hash, definition: structuredClone(definition) };
  }
}

function contentsOf(library: Library): Contents {
  const {
    personas,
    tools,
    modelProfiles,
    tasks = [],
    actions = [],
    prompts = [],
    workflows = [],
    skills = [],
  } = library;
  return {
    persona: personas.map(({ id, definition }) => ({ id, definition: completePersona(definition) })),
    tool: tools,
    "model-profile": modelProfiles,
    task: tasks,
    action: actions,
    prompt: prompts,
    workflow: workflows,
    skill: skills.map((definition) => ({ id: skillId(definition), definition })),
  };
}

const BUILT_IN = contentsOf(builtIn);

function functionOf({ id, definition, run }: Task, approval?: ApprovalNeed): DeployedFunction | undefined {
  const { inputSchema, outputSchema, effect, timeoutMs } = definition;
  if (run === undefined || effect === undefined) return undefined;
  const retry = attemptsOf(definition.retry);
  return {
    id,
    definition: { inputSchema, effect, timeoutMs, ...defined({ approval, retry }) },
    run,
    ...defined({ outputSchema }),
  };
}

export function nameOf({ kind, library, id }: UnversionedDefinition): string {
  return `${kind} ${library}/${id}`;
}

/** Throws `INVALID_INPUT` if the value is not a library. Code without types can pass any value. */
function checkMade(library: unknown, index: number): void {
  const members: object = typeof library === "object" && library !== null ? library : {};
  if (["id", "personas", "tools", "modelProfiles"].every((name) => name in members)) return;
  const fix =
    "library" in members
      ? "Its member `library` is the library: write that member, as in `libraries: [team.library]`."
      : "Make it with defineLibrary(…).";
  throw invalid(`\`libraries[${index}]\` is not a library. ${fix}`);
}
