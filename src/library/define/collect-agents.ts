/**
 * Collects the agents, tools and workflows of an application in code into one library.
 *
 * COLLECT-1  Each definition is collected once, however often and from wherever agents refer to it. Their order has no effect on the library.
 * COLLECT-2  Two different agents or tools with one id are an error that names both places and the change.
 * COLLECT-3  Agents that ask each other are no error.
 * COLLECT-4  If there are agents in code, a library of the application with the id of their library is an error that says what to change.
 */
import { defined } from "../../shared/defined.ts";
import { invalid } from "../../shared/errors.ts";
import {
  type AgentInCode,
  isAgent,
  isTask,
  isWorkflow,
  type Task,
  type Tool,
  type Workflow,
} from "../tasks/built.ts";
import { defineLibrary, defineTool, type Library } from "./define.ts";
import { UNDEFINED } from "./define-agent.ts";
import { embeddedIn } from "./define-workflow.ts";

/** The library of the agents in code. */
const APP_LIBRARY = "app";

/** The parts of an application that define agents. `Other` is a declaration of an agent by reference. */
export interface Application<Other> {
  libraries?: readonly Library[];
  agents?: readonly (AgentInCode | Other)[];
  /** Workflows that runs may start by name, as `app/<id>`. */
  workflows?: readonly Workflow[];
}

interface Declared {
  id: string;
  persona: string;
  projectIds?: string[];
}

/** Returns the libraries and the declarations of an application, with its agents in code. Throws `INVALID_INPUT` (COLLECT-2, COLLECT-4). */
export function collectAgents<Other extends { id: string }>({
  libraries = [],
  agents: given = [],
  workflows = [],
}: Application<Other>): { libraries: readonly Library[]; agents: (Declared | Other)[] } {
  const found = new Collection();
  for (const [index, agent] of given.entries()) {
    if (agent === undefined) throw invalid(`/agents/${index}: ${UNDEFINED}`);
    if (isAgent(agent)) found.addAgent(agent, "`agents`");
    else if ("instructions" in agent) throw invalid(`Agent "${agent.id}": Make it with defineAgent(…).`);
  }
  for (const library of Array.isArray(libraries) ? libraries : []) found.addFrom(library);
  found.addFrom({ workflows });
  const library = found.library(workflows);
  if (library === null)
    return { libraries, agents: given.filter((agent): agent is Other => !isAgent(agent)) };
  if (libraries.some(({ id }) => id === APP_LIBRARY))
    throw invalid(
      `The library "${APP_LIBRARY}" needs another id: agents made with defineAgent(…), and \`workflows\`, are in a library of this id.`,
    );
  const declared = ({ id, projectIds }: AgentInCode) => ({
    id,
    persona: `${APP_LIBRARY}/${id}`,
    ...defined({ projectIds }),
  });
  const others = found.agents.filter((agent) => !given.includes(agent));
  return {
    libraries: [...libraries, library],
    agents: [...given.map((agent) => (isAgent(agent) ? declared(agent) : agent)), ...others.map(declared)],
  };
}

/** Definitions by id, each with the place that refers to it. */
class Unique<Definition extends { id: string }> {
  readonly #byId = new Map<string, { definition: Definition; place: string }>();

  constructor(readonly what: string) {}

  get all(): Definition[] {
    return [...this.#byId.values()].map(({ definition }) => definition).toSorted(byId);
  }

  get(id: string): Definition | undefined {
    return this.#byId.get(id)?.definition;
  }

  /** Returns `false` if the definition is already there. Throws for another definition with its id. */
  add(definition: Definition, place: string): boolean {
    const other = this.#byId.get(definition.id);
    if (other === undefined) this.#byId.set(definition.id, { definition, place });
    if (other === undefined || other.definition === definition) return other === undefined;
    const places = other.place === place ? `both in ${place}` : `in ${other.place} and in ${place}`;
    throw invalid(
      `Two different ${this.what}s have the id "${definition.id}": ${places}. Rename one of them, or use the same object in both places.`,
    );
  }
}

class Collection {
  readonly #agents = new Unique<AgentInCode>("agent");
  readonly #tools = new Unique<Tool>("tool");
  readonly #made = new Map<Task | Workflow, Tool>();

  get agents(): AgentInCode[] {
    return this.#agents.all;
  }

  addAgent(agent: AgentInCode, place: string): void {
    if (!this.#agents.add(agent, place)) return;
    const here = `the agent "${agent.id}"`;
    const tools = agent.tools.flatMap((tool) => this.#toolOf(tool) ?? []);
    for (const tool of tools) this.#tools.add(tool, here);
    this.addFrom({ tools, ...defined({ workflows: agent.workflows }) });
    for (const colleague of agent.colleagues()) if (isAgent(colleague)) this.addAgent(colleague, here);
  }

  addFrom({ tools = [], workflows = [] }: Partial<Pick<Library, "tools" | "workflows">>): void {
    for (const { id, agent } of tools) if (agent !== undefined) this.addAgent(agent, `the tool "${id}"`);
    for (const workflow of [...workflows, ...tools.flatMap((tool) => tool.workflow ?? [])])
      for (const agent of embeddedIn(workflow).agents) this.addAgent(agent, `the workflow "${workflow.id}"`);
  }

  /** Returns the library of all agents; `null` if there is nothing to collect. */
  library(workflows: readonly Workflow[]): Library | null {
    const { agents } = this;
    if (agents.length === 0 && workflows.length === 0) return null;
    const personas = agents.map(({ id, definition, workflows: ofHooks, ...agent }) => {
      const here = `the agent "${id}"`;
      const own = agent.tools.map((tool) => this.#toolOf(tool)?.id ?? tool) as string[];
      const asked = agent.colleagues().map((colleague) => {
        const tool = this.#asking(isAgent(colleague) ? colleague.id : colleague);
        this.#tools.add(tool, here);
        return tool.id;
      });
      const toolIds = [...own, ...asked];
      const tools = toolIds.length === 0 ? {} : { tools: { ...definition.tools, toolIds } };
      return { id, definition: { ...definition, ...tools }, ...defined({ workflows: ofHooks }) };
    });
    return defineLibrary(APP_LIBRARY, {
      personas,
      workflows: [...workflows].toSorted(byId),
      tools: this.#tools.all,
      modelProfiles: [...new Set(agents.flatMap(({ modelProfile }) => modelProfile ?? []))],
    });
  }

  /** Returns the tool of an entry of `tools`; `undefined` for a reference. */
  #toolOf(given: AgentInCode["tools"][number]): Tool | undefined {
    if (isTask(given) || isWorkflow(given)) {
      const { id: name, definition } = given;
      // In a library, a tool and a task have different ids.
      const common = { name, description: definition.description ?? name };
      const made =
        this.#made.get(given) ??
        (isTask(given)
          ? defineTool({ ...common, id: `${name}-tool`, target: { task: given } })
          : defineTool({ ...common, target: { workflow: given } }));
      this.#made.set(given, made);
      return made;
    }
    return typeof given === "object" && "run" in given ? given : undefined;
  }

  readonly #askTools = new Map<string, Tool>();

  #asking(agent: string): Tool {
    const { name = agent, description } = this.#agents.get(agent)?.definition ?? {};
    const about = description === undefined ? "" : ` ${description}`;
    const tool =
      this.#askTools.get(agent) ??
      defineTool({
        name: `ask_${agent.replaceAll("-", "_")}`,
        description: `Asks the agent ${name}.${about} It sees only your message, so write all that it needs.`,
        target: { agent },
      });
    this.#askTools.set(agent, tool);
    return tool;
  }
}

function byId(one: { id: string }, other: { id: string }): number {
  return one.id < other.id ? -1 : 1;
}
