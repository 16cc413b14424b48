/** The application of a test app. */
import type { Library } from "../library/define/define.ts";
import { DeployedCode } from "../library/registry/deployed-code.ts";
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
export interface TestAppOptions {
  libraries?: readonly Library[];
  /** Default: an agent for each persona of the libraries, with the id of the persona. */
  agents?: readonly TestAgent[];
  gate?: Gate;
  /**
   * Answers the requests of `http.request` actions. A request without an answer fails, and reaches no server.
   * @example createTestApp({ libraries, http: ({ url }) => (url.endsWith("/price") ? Response.json({ price: 7 }) : undefined) });
   */
  http?: HttpAnswer;
}

/** Returns the parts of a world from the options of an application. Throws `INVALID_INPUT` without agents. */
export function worldParts({ libraries = [], agents, gate, http }: TestAppOptions): WorldParts {
  const ofLibraries = libraries.flatMap(({ id: library, personas }) =>
    personas.map(
      ({ id }): TestAgent => ({ id: id.toLowerCase().replaceAll("_", "-"), persona: { library, id } }),
    ),
  );
  const all = new Map((agents ?? ofLibraries).map((agent) => [agent.id, agent]));
  return { code: new DeployedCode(libraries), agents: all, ...defined({ gate, http }) };
}
