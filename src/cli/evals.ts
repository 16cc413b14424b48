/** `dramatis eval`: runs the evals of a project. It needs no server. */
import { defined } from "../shared/defined.ts";
import type { Answer, Cli, Command, Options } from "./command.ts";
import { CommandFailure } from "./failure.ts";
import { nodeProblem } from "./node-version.ts";
import { clean } from "./text.ts";

async function evaluate(
  _cli: Cli,
  files: (string | undefined)[],
  { baseline, replies, save, live }: Options,
): Promise<Answer> {
  const problem = nodeProblem();
  if (problem !== undefined) throw new CommandFailure(problem);
  // The other commands start faster without the runtime.
  const { evalFiles } = await import("../testing/index.ts");
  const { results, text, passed } = await evalFiles(
    files.filter((file) => file !== undefined),
    { ...defined({ baseline, replies }), save: save !== undefined, live: live !== undefined },
  );
  // Reasons are texts of models (CLITEXT-2).
  return { value: results, text: clean(text), failed: !passed };
}

export const EVAL_COMMANDS: readonly Command[] = [
  {
    name: "eval",
    about: "runs evals, and compares their scores with a baseline",
    args: { "[files...]": "modules that export evals; all *.eval.ts and *.eval.js by default" },
    options: {
      "--baseline <file>": "file of saved scores, evals.baseline.json by default",
      "--save": "saves the scores as the baseline",
      "--live": "calls models for requests without a recorded reply, and records the replies",
      "--replies <file>": "file of recorded replies, evals.replies.json by default",
    },
    run: evaluate,
  },
];
