/** The application of a test app. */
import { type Application, collectAgents } from "../library/define/collect-agents.ts";
import { DeployedCode } from "../library/registry/deployed-code.ts";
import type { AgentInCode } from "../library/tasks/built.ts";
import { type Gate, strictestOf } from "../policy/gate.ts";
import { type PolicyRule, policyOf } from "../policy/policy.ts";
import type { PersonaSource } from "../protocol/definitions.ts";
import { defined } from "../shared/defined.ts";
import type { HttpAnswer } from "./world/scripted-http.ts";
import type { WorldParts } from "./world/test-world.ts";
import type { FilesOptions } from "./world/world-files.ts";

/** An agent of a test app, as `dramatis()` declares it. */
export interface TestAgent {
  id: string;
  persona: PersonaSource;
  projectIds?: string[];
}

/** The application. The options of `dramatis()` fit. */
export interface TestAppOptions extends Application<TestAgent>, FilesOptions {
  /** Default: an agent for each persona of the libraries, with the id of the persona. */
  agents?: readonly (AgentInCode | TestAgent)[];
  policy?: readonly PolicyRule[];
  gate?: Gate;
  /**
   * Answers the requests of `http.request` actions. A request without an answer fails, and reaches no server.
   * @example createTestApp({ libraries, http: ({ url }) => (url.endsWith("/price") ? Response.json({ price: 7 }) : undefined) });
   */
  http?: HttpAnswer;
}

/** Returns the parts of a world from the options of an application. Throws `INVALID_INPUT` without agents. */
export function worldParts({
  gate: own,
  policy = [],
  http,
  projects,
  artifactTypes,
  workspaces,
  ...application
}: TestAppOptions): WorldParts {
  const { libraries, agents } = collectAgents(application);
  const gate = strictestOf(policyOf(policy), ...(own === undefined ? [] : [own]));
  const ofLibraries = libraries.flatMap(({ id: library, personas }) =>
    personas.map(
      ({ id }): TestAgent => ({ id: id.toLowerCase().replaceAll("_", "-"), persona: { library, id } }),
    ),
  );
  const all = new Map(
    [...(application.agents === undefined ? ofLibraries : []), ...agents].map((agent) => [agent.id, agent]),
  );
  const files = defined({ projects, artifactTypes, workspaces });
  return { code: new DeployedCode(libraries), agents: all, files, ...defined({ gate, http }) };
}
