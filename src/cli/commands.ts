/** The table of all commands. */
import { ACP_COMMANDS } from "./acp.ts";
import { ACT_COMMANDS } from "./acts.ts";
import { CALL_COMMANDS } from "./call.ts";
import type { Command } from "./command.ts";
import { DOCTOR_COMMANDS } from "./doctor.ts";
import { EVAL_COMMANDS } from "./evals.ts";
import { FILE_COMMANDS } from "./files.ts";
import { INIT_COMMANDS } from "./init.ts";
import { INSPECT_COMMANDS } from "./inspect.ts";
import { LIST_COMMANDS } from "./list.ts";
import { STREAM_COMMANDS } from "./stream.ts";

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
export const GROUPS: Record<string, string> = {
  list: "lists conversations, agents, runs, turns or approvals",
  "dead-letters": "lists or redelivers undelivered messages between actors",
};
