/** The application of a test app. */
import { type Application, collectAgents } from "../library/define/collect-agents.ts";
import { DeployedCode } from "../library/registry/deployed-code.ts";
import type { AgentInCode } from "../library/tasks/built.ts";
import type { Gate } from "../policy/gate.ts";
import type { PersonaSource } from "../protocol/definitions.ts";
import { defined } from "../shared/defined.ts";
import type { HttpAnswer } from "./world/scripted-http.ts";
import type { WorldParts } from "./world/test-world.ts";

/** An agent of a test app, as `dramatis()` declares it. */
export interface TestAgent {
  id: string;
  persona: PersonaSource;
  projectIds?: string[];
}

/** The application. The options of `dramatis()` fit. */
export interface TestAppOptions extends Application<TestAgent> {
  /** Default: an agent for each persona of the libraries, with the id of the persona. */
  agents?: readonly (AgentInCode | TestAgent)[];
  gate?: Gate;
  /**
   * Answers the requests of `http.request` actions. A request without an answer fails, and reaches no server.
   * @example createTestApp({ libraries, http: ({ url }) => (url.endsWith("/price") ? Response.json({ price: 7 }) : undefined) });
   */
  http?: HttpAnswer;
}

/** Returns the parts of a world from the options of an application. Throws `INVALID_INPUT` without agents. */
export function worldParts({ gate, http, ...application }: TestAppOptions): WorldParts {
  const { libraries, agents } = collectAgents(application);
  const ofLibraries = libraries.flatMap(({ id: library, personas }) =>
    personas.map(
      ({ id }): TestAgent => ({ id: id.toLowerCase().replaceAll("_", "-"), persona: { library, id } }),
    ),
  );
  const all = new Map(
    [...(application.agents === undefined ? ofLibraries : []), ...agents].map((agent) => [agent.id, agent]),
  );
  return { code: new DeployedCode(libraries), agents: all, ...defined({ gate, http }) };
}
