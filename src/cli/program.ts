/** Derives the command line from the table of commands. */
import { Command as Program } from "commander";
import { VERSION } from "../shared/version.ts";
import { ACP_COMMANDS } from "./acp.ts";
import { ACT_COMMANDS } from "./acts.ts";
import { CALL_COMMANDS } from "./call.ts";
import type { Answer, Cli, Command, Options } from "./command.ts";
import { DOCTOR_COMMANDS } from "./doctor.ts";
import { EVAL_COMMANDS } from "./evals.ts";
import { FILE_COMMANDS } from "./files.ts";
import { INIT_COMMANDS } from "./init.ts";
import { INSPECT_COMMANDS } from "./inspect.ts";
import { LIST_COMMANDS } from "./list.ts";
import { DEFAULT_URL } from "./settings.ts";
import { STREAM_COMMANDS } from "./stream.ts";
import { DEFAULT_WIDTH } from "./text.ts";

export const COMMANDS: readonly Command[] = [
  ...LIST_COMMANDS,
  ...INSPECT_COMMANDS,
  ...STREAM_COMMANDS,
  ...ACT_COMMANDS,
  ...FILE_COMMANDS,
  ...INIT_COMMANDS,
  ...EVAL_COMMANDS,
  ...DOCTOR_COMMANDS,
  ...CALL_COMMANDS,
  ...ACP_COMMANDS,
];

/** Words that begin several commands, with their descriptions. */
const GROUPS: Record<string, string> = {
  list: "lists conversations, agents, runs, turns or approvals",
  "dead-letters": "lists or redelivers undelivered messages between actors",
};

const HELP = `
Environment:
  DRAMATIS_URL    address of the server, ${DEFAULT_URL} by default
  DRAMATIS_TOKEN  token of your requests

Exit codes: 0 success, 1 the operation failed, 2 wrong usage, 130 Ctrl-C.`;

export interface ProgramPorts {
  write(text: string): void;
  writeError(text: string): void;
  /** Returns the services for a command. */
  open(options: { url?: string; json: boolean }): Cli;
  /** Takes the answer of a command. */
  done(cli: Cli, answer: Answer | undefined): Promise<void>;
}

/** Returns the program. It throws `CommanderError` for a command that was written wrongly. */
export function createProgram(ports: ProgramPorts): Program {
  const program = settable(configured(new Program("dramatis"), ports))
    .description("Reads and steers the agents of a Dramatis server.")
    .version(VERSION)
    .addHelpText("after", HELP);
  const groups = new Map<string, Program>();
  for (const command of COMMANDS) {
    const [group = "", name] = command.name.split(" ");
    if (name === undefined) {
      add(program, group, command, ports);
      continue;
    }
    const parent =
      groups.get(group) ?? configured(program.command(group), ports).description(GROUPS[group] ?? "");
    groups.set(group, parent);
    add(parent, name, command, ports);
  }
  return program;
}

function configured(program: Program, { write, writeError }: ProgramPorts): Program {
  return program
    .exitOverride()
    .showSuggestionAfterError()
    .showHelpAfterError("See: dramatis --help")
    .configureOutput({
      writeOut: write,
      writeErr: writeError,
      getOutHelpWidth: () => DEFAULT_WIDTH,
      getErrHelpWidth: () => DEFAULT_WIDTH,
    });
}

/** Adds the options of every command. They may come before the command, too. */
function settable(program: Program): Program {
  return program.option("--url <url>", "address of the server").option("--json", "JSON for programs");
}

function add(parent: Program, name: string, command: Command, ports: ProgramPorts): void {
  const { about, args = {}, options = {}, run } = command;
  const program = settable(configured(parent.command(name), ports)).description(about);
  for (const [argument, description] of Object.entries(args)) program.argument(argument, description);
  for (const [flags, description] of Object.entries(options)) program.option(flags, description);
  program.action(async () => {
    const { json, ...given } = program.optsWithGlobals<Options & { json?: true }>();
    const { url } = given;
    const cli = ports.open({ json: json === true, ...(url !== undefined && { url }) });
    // SAFETY: commander gives a string per argument, `undefined` for an absent argument, and a list for the last, variadic argument.
    const values = program.processedArgs as (string | string[] | undefined)[];
    await ports.done(cli, await run(cli, values.flat(), given));
  });
}
