/** The commands of calls in a shell, and the commands in the background of a shell that runs in the actor. */
import { COMMAND_MS, type WORKSPACE_INPUTS } from "../../../protocol/workspace.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { changedPaths, changesBetween } from "../core/command-changes.ts";
import { listed } from "../core/operations.ts";
import type { WorkingTree } from "../core/working-tree.ts";
import type { CommandPlace, CommandState, Shell, ShellCommands, ShellOptions } from "./shell.ts";

export async function runCommand(
  shell: Shell,
  tree: WorkingTree,
  { command, timeoutMs = COMMAND_MS.default }: (typeof WORKSPACE_INPUTS)["shell.exec"]["_output"],
  options: Omit<ShellOptions, "timeoutMs">,
): Promise<JsonObject> {
  const before = tree.fork();
  const result = await shell.exec(tree, command, { ...options, timeoutMs });
  const { items, ...rest } = listed(changedPaths(before, tree), (path) => path);
  return { ...result, changed: items, ...rest };
}

/** The commands end with the actor, and show their output when they end. */
export class ActorCommands implements ShellCommands {
  readonly #commands = new Map<string, { stop: AbortController; look: () => Promise<CommandState> }>();

  /** `onEnd` is called at the end of each command. */
  constructor(
    private readonly shell: Pick<Shell, "exec">,
    private readonly onEnd: () => void,
  ) {}

  async start(
    tree: WorkingTree,
    id: string,
    command: string,
    options: CommandPlace & Pick<ShellOptions, "skills">,
  ): Promise<void> {
    const stop = new AbortController();
    const known = {
      stop,
      look: async (): Promise<CommandState> => ({ state: "running", stdout: "", stderr: "" }),
    };
    this.#commands.set(id, known);
    const [before, after] = [tree.fork(), tree.fork()];
    const ended = this.shell
      .exec(after, command, { ...options, signal: stop.signal })
      .then(async (result) => ({
        ...{ state: "ended" as const, result, changes: await changesBetween(before, after) },
      }))
      .catch((error: unknown) => {
        throw error instanceof DramatisError ? error : new DramatisError("INTERNAL_ERROR", String(error));
      });
    void ended
      .catch(() => undefined)
      .then(() => {
        known.look = () => ended;
        this.onEnd();
      });
  }

  async look(id: string): Promise<CommandState> {
    return this.#commands.get(id)?.look() ?? { state: "lost" };
  }

  async stop(id: string): Promise<void> {
    this.#commands.get(id)?.stop.abort();
    this.#commands.delete(id);
  }
}
