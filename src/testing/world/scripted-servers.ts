/**
 * The servers of a test app: tools in code stand for the tools of MCP servers, and a function of the test answers for agents of other servers.
 *
 * TESTSERVER-1  A test app connects to no server. A reference to a server without doubles is refused, and so is a tool without a double.
 * TESTSERVER-2  A message without a scripted answer fails, and `onMissing` takes the problem.
 * TESTSERVER-3  Each call is recorded as an effect.
 */
import type { Tool, ToolContext } from "../../library/define/define.ts";
import { contentHash } from "../../library/definitions/definition.ts";
import { type McpReference, mcpLibrary, modelName } from "../../library/definitions/mcp-reference.ts";
import type { DeployedCode } from "../../library/registry/deployed-code.ts";
import type { McpSource } from "../../library/registry/mcp-source.ts";
import { remoteMessage } from "../../library/tools/remote-agent.ts";
import { ToolError } from "../../library/tools/tool-error.ts";
import type { ToolInvocation } from "../../protocol/executor-api.ts";
import { defined } from "../../shared/defined.ts";
import { notFound } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";
import { listIds } from "../../shared/known-ids.ts";
import type { EffectRecorder } from "./tool-runs.ts";

/** The doubles of tools, by the id of their MCP server. */
export type McpDoubles = Readonly<Record<string, readonly Tool[]>>;

/** A message to an agent of another server. */
export interface RemoteMessage {
  /** The tool that sends it, as `library/id`. */
  tool: string;
  url: string;
  text: string;
}

/** Answers a message. `undefined`: the test has no answer. */
export type RemoteAnswer = (message: RemoteMessage) => Json | undefined | Promise<Json | undefined>;

/** Returns the doubles as the source of a registry. */
export function mcpDoubles(servers: McpDoubles): McpSource {
  const named = ({ server, tool }: McpReference): readonly Tool[] => {
    const tools = Object.hasOwn(servers, server) ? servers[server] : undefined;
    if (tools === undefined)
      throw notFound(
        `A test app connects to no MCP server. Give doubles of the tools of "${server}" in the option \`mcpTools\`, such as \`mcpTools: { "${server}": [defineTool({…})] }\`.`,
      );
    const wanted = tool === "*" ? tools : tools.filter(({ id }) => id === tool);
    if (wanted.length > 0 || tool === "*") return wanted;
    const ids = tools.map(({ id }) => id);
    throw notFound(
      `The option \`mcpTools\` has no double of the tool "${tool}" of "${server}". It has: ${listIds(tool, ids)}.`,
    );
  };
  return {
    check: (reference) => void named(reference),
    resolve: async (reference) => ({
      withheld: {},
      tools: await Promise.all(
        named(reference).map(async ({ id, definition }) => ({
          ...{ library: mcpLibrary(reference.server), id, version: 1, hash: await contentHash(definition) },
          definition: { ...definition, name: modelName(reference.server, id) },
        })),
      ),
    }),
  };
}

/** Runs the double of a tool. */
export async function callDouble(
  servers: McpDoubles,
  recorder: EffectRecorder,
  { tool: { library, id }, input }: ToolInvocation,
  server: string,
  context: ToolContext,
): Promise<Json> {
  const double = servers[server]?.find((tool) => tool.id === id);
  if (double === undefined)
    throw new ToolError(`There is no double of "${library}/${id}".`, { code: "NOT_FOUND" });
  const { effect } = double.definition;
  // SAFETY: the executor refuses a result that is no JSON.
  return recorder.run(context, {
    ...{ tool: `${library}/${id}`, effect, input },
    run: () => double.run(input, context) as Promise<Json>,
  });
}

/** Answers a message to an agent of another server. */
export async function answerRemote(
  { code, answer }: { code: Pick<DeployedCode, "definition">; answer: RemoteAnswer | undefined },
  recorder: EffectRecorder,
  onMissing: (problem: string) => void,
  call: ToolInvocation,
  url: string,
  context: ToolContext,
): Promise<Json> {
  const { library, id } = call.tool;
  const tool = `${library}/${id}`;
  const { text } = remoteMessage(call.input);
  const known = await code.definition("tool", { library, id });
  return recorder.run<Json>(context, {
    ...{ tool, input: call.input, ...defined({ effect: known?.definition.effect }) },
    run: async () => {
      const found = await answer?.({ tool, url, text });
      if (found !== undefined) return found;
      const problem = `No answer is scripted for the message of "${tool}" to the agent at ${url}, and a test app sends no message. Answer it with the option \`remoteAgents\`, such as \`remoteAgents: ({ text }) => "Hello"\`.`;
      onMissing(problem);
      throw new ToolError(problem, { code: "INVALID_INPUT" });
    },
  });
}
