/**
 * `dramatis acp`: an agent for editors that speak the Agent Client Protocol (ACP) over standard input and output.
 *
 * ACP-13  Standard output has messages of the protocol only. Notes go to standard error.
 */
import { once } from "node:events";
import { Readable } from "node:stream";
import type { Cli, Command, Options } from "./command.ts";
import { wrongUsage } from "./failure.ts";
import { escapedJson } from "./text.ts";

async function acp(cli: Cli, _args: (string | undefined)[], { agent }: Options): Promise<undefined> {
  if (agent === undefined)
    throw wrongUsage("Name the agent: --agent assistant. List the agents with: dramatis list agents");
  // Other commands start without these modules.
  const { ndJsonStream } = await import("@agentclientprotocol/sdk");
  const { editorApp } = await import("./acp-app.ts");
  const decoder = new TextDecoder();
  // The text of a model may contain the token, which `write` removes (CLITOKEN-1).
  const output = new WritableStream<Uint8Array>({
    write: (line) => cli.write(escapedJson(decoder.decode(line))),
  });
  // SAFETY: the types of Node and of the platform name the same class.
  const input = Readable.toWeb(process.stdin) as unknown as ReadableStream<Uint8Array>;
  const connection = editorApp(cli, agent).connect(ndJsonStream(output, input));
  await Promise.race([connection.closed, once(cli.signal, "abort")]);
  cli.signal.throwIfAborted();
  return undefined;
}

export const ACP_COMMANDS: readonly Command[] = [
  {
    name: "acp",
    about: "serves an agent to an editor with the Agent Client Protocol, over standard input and output",
    options: { "--agent <id>": "id of the agent" },
    run: acp,
  },
];
