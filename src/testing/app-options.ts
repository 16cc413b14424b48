/** The application of a test app. */
import { type Application, collectAgents } from "../library/define/collect-agents.ts";
import { DeployedCode } from "../library/registry/deployed-code.ts";
import type { AgentInCode } from "../library/tasks/built.ts";
import { type Gate, strictestOf } from "../policy/gate.ts";
import { type PolicyRule, policyOf } from "../policy/policy.ts";
import type { PersonaSource } from "../protocol/definitions.ts";
import { defined } from "../shared/defined.ts";
import { checkOptions } from "../shared/validation.ts";
import type { HttpAnswer } from "./world/scripted-http.ts";
import type { McpDoubles, RemoteAnswer } from "./world/scripted-servers.ts";
import type { WorldParts } from "./world/test-world.ts";
import type { FilesOptions } from "./world/world-files.ts";

/** An agent of a test app, as `dramatis()` declares it. */
export interface TestAgent {
  id: string;
  persona: PersonaSource;
  projectIds?: string[];
}

/** The application: options of `dramatis()`, and the answers of the test for other servers. */
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
  /**
   * Doubles of the tools of MCP servers, by the id of the server. The model calls them as the tools of the server.
   * @example createTestApp({ agents, mcpTools: { shop: [defineTool({ name: "find", description: "Finds.", input, execute: () => "Tea" })] } });
   */
  mcpTools?: McpDoubles;
  /**
   * Answers for agents of other servers. A message without an answer fails, and reaches no server.
   * @example createTestApp({ agents, remoteAgents: ({ url, text }) => `I got: ${text}` });
   */
  remoteAgents?: RemoteAnswer;
}

const OPTIONS: Record<keyof TestAppOptions, true> = {
  ...{ libraries: true, agents: true, workflows: true, policy: true, gate: true },
  ...{ projects: true, artifactTypes: true, workspaces: true },
  ...{ http: true, mcpTools: true, remoteAgents: true },
};

/** Returns the parts of a world from the options of an application. Throws `INVALID_INPUT` for an unknown option. */
export function worldParts(options: TestAppOptions): WorldParts {
  checkOptions("A test app", options, OPTIONS);
  const { projects, artifactTypes, workspaces, http, mcpTools, remoteAgents, ...rest } = options;
  const { gate: own, policy = [], ...application } = rest;
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
  return {
    code: new DeployedCode(libraries),
    agents: all,
    files,
    ...defined({ gate, http, mcpTools, remoteAgents }),
  };
}
