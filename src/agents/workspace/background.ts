/**
 * The command in the background of a workspace, from its start to the delivery of its outcome to the operation that started it.
 *
 * BACKGROUND-4  A workspace runs one command in the background. Its start is stored before the shell gets the command, and a repeated start
 *               starts nothing, also if the shell did not answer the first start.
 * BACKGROUND-5  The outcome is stored in the transaction with the changes, and delivered until the operation has it or its handle expires.
 *               After a restart of the actor the command continues if its machine still runs it. Else its outcome is an error.
 * BACKGROUND-6  While the command runs, the operation is asked at least every 10 seconds whether it still waits. If it does not, the command
 *               stops.
 */
import type { Clock } from "../../ports/clock.ts";
import { readHandle } from "../../protocol/operation-handle.ts";
import type { ToolOutcome } from "../../protocol/requests.ts";
import { BACKGROUND_MS, type WORKSPACE_INPUTS } from "../../protocol/workspace.ts";
import { conflict, DramatisError, hasCode, invalid, notFound } from "../../shared/errors.ts";
import type { JsonObject } from "../../shared/json.ts";
import { piece } from "../../shared/text.ts";
import { toIso } from "../../shared/time.ts";
import { applyChanges } from "./core/command-changes.ts";
import { listed } from "./core/operations.ts";
import type { WorkingTree } from "./core/working-tree.ts";
import type { Opened } from "./open-repositories.ts";
import { ActorCommands } from "./shell/commands.ts";
import type { CommandState, Shell, ShellCommands, ShellOptions, ShellResult } from "./shell/shell.ts";
import { type BackgroundCommand, deletedMeanwhile, type WorkspaceStore } from "./store.ts";

/** The operations that wait for commands, by their handles. */
export interface WaitingOperations {
  /** Shows the progress of an operation. Returns whether the operation still waits. Throws `NOT_FOUND` for an unknown operation. */
  report(handle: string, progress?: JsonObject): Promise<boolean>;
  /** Throws `CONFLICT` or `NOT_FOUND` if the operation has ended otherwise. */
  complete(handle: string, outcome: ToolOutcome): Promise<void>;
}

interface BackgroundPorts {
  store: WorkspaceStore;
  clock: Pick<Clock, "now">;
  shell: Shell;
  operations: WaitingOperations;
  workspace(): ShellOptions["workspace"];
  /** Makes `wake` run in at most `milliseconds`. */
  arm(milliseconds: number): Promise<void>;
  /** Runs `change` in the order of the operations that change files, with the open repository. */
  change<Value>(id: string, repo: string, change: (opened: Opened) => Promise<Value>): Promise<Value>;
  isSensitive(path: string): boolean;
}

type Input = (typeof WORKSPACE_INPUTS)["shell.start"]["_output"];

/** Characters of each output stream in a result, and in the progress. */
const [MAX_TAIL, MAX_PROGRESS] = [65_536, 1_200];
/** The shortest and the longest pause between two looks at a command, in milliseconds. */
const [MIN_PAUSE_MS, MAX_PAUSE_MS] = [1_000, 10_000];

export class BackgroundCommands {
  readonly #commands: ShellCommands;
  /** The command that the shell is getting. It is unknown to the shell before. */
  #starting: string | undefined;
  #looking: Promise<void> | undefined;
  /** The newest output of the running command. */
  #output: { stdout: string; stderr: string } | undefined;

  constructor(private readonly ports: BackgroundPorts) {
    this.#commands = ports.shell.commands ?? new ActorCommands(ports.shell, () => void this.#look());
  }

  async start(
    { branch: { repo, since } }: Opened,
    tree: WorkingTree,
    { id, receipt, skills }: { id: string; receipt: string; skills?: ShellOptions["skills"] },
    { command, timeoutMs = BACKGROUND_MS.default, handle }: Input,
  ): Promise<JsonObject> {
    const { store, clock } = this.ports;
    const { claim } = readHandle(handle) ?? {};
    if (claim === undefined) throw invalid("`handle` is no handle. Pass the `handle` of `ctx.defer()`.");
    if (store.command?.handle !== undefined)
      throw conflict(
        `The command "${store.command.id}" runs in the background. Wait for its result, or stop it with \`shell_stop\`.`,
      );
    const { expiresAt } = claim;
    const record = { id, repo, since, command, timeoutMs, startedAt: clock.now(), handle, expiresAt };
    const result = { id, state: "running" };
    this.#output = undefined;
    this.#starting = id;
    try {
      let armed: Promise<void> | undefined;
      store.beginCommand(record, receipt, result, () => {
        armed = this.ports.arm(MIN_PAUSE_MS);
      });
      await armed;
      // Without an answer the command may run. The next look tells its state.
      await this.#commands
        .start(tree, id, command, { ...this.#place(record), skills })
        .catch((error: unknown) => {
          if (!isTransient(error)) throw error;
        });
      // During the start the call may be erased, or the command stopped.
      if (store.command?.id !== id || store.command.outcome !== undefined) await this.#stop(record);
      return result;
    } catch (error) {
      await this.#stop(record);
      store.dropCommand(receipt);
      throw error;
    } finally {
      this.#starting = undefined;
    }
  }

  async output(): Promise<JsonObject> {
    await this.#look();
    const { command: record } = this.ports.store;
    if (record === undefined)
      throw notFound("The workspace has no command in the background. Start a command with `shell_start`.");
    const { id, command, startedAt, outcome } = record;
    const known = { id, command, startedAt: toIso(startedAt) };
    if (outcome === undefined)
      return { ...known, state: "running", ...(this.#output && shown(this.#output)) };
    const { result, error } = outcome;
    return { ...known, state: "ended", ...(error === undefined ? (result as JsonObject) : { error }) };
  }

  /** Stops a command. Throws `NOT_FOUND` for another id. */
  async stop(id: string): Promise<JsonObject> {
    const { command } = this.ports.store;
    if (command?.id !== id) throw notFound(`The workspace has no command "${id}" in the background.`);
    if (command.outcome !== undefined) return { id, stopped: false };
    await this.#end(command, STOPPED);
    await this.#stop(command);
    await this.#look();
    return { id, stopped: true };
  }

  /** Stops the command of a call before its record is deleted. Throws `UNAVAILABLE` if the shell does not answer. */
  async forgetCall(callId: string): Promise<void> {
    const command = this.ports.store.commandOf(callId);
    if (command?.handle !== undefined) await this.#commands.stop(command.id, this.#place(command));
  }

  /** Stops the command before the workspace is deleted. */
  async forget(): Promise<void> {
    const { command } = this.ports.store;
    if (command !== undefined && command.outcome === undefined) await this.#stop(command);
  }

  /** Moves the command on. Returns the milliseconds until the next look; `null` without work. */
  wake(): number | null {
    const { record, command } = this.ports.store;
    if (record === undefined || command?.handle === undefined) return null;
    void this.#look();
    return pauseAfter(this.ports.clock.now() - command.startedAt);
  }

  /** Looks at the command, and delivers its outcome. Never rejects. */
  #look(): Promise<void> {
    this.#looking ??= this.#step()
      .catch((error: unknown) => console.warn("The command in the background could not be moved on.", error))
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  async #step(): Promise<void> {
    const { command } = this.ports.store;
    if (command?.handle === undefined || command.id === this.#starting) return;
    const outcome = command.outcome ?? (await this.#outcomeOf(command, command.handle));
    if (outcome !== undefined) await this.#deliver(command, command.handle, outcome);
  }

  /** Returns the outcome of a command, and stores it; `undefined` while the command runs. */
  async #outcomeOf(command: BackgroundCommand, handle: string): Promise<ToolOutcome | undefined> {
    try {
      const seen = await this.#commands.look(command.id, this.#place(command));
      if (seen.state === "ended") return await this.#take(command, seen);
      if (seen.state === "lost") return await this.#end(command, LOST);
      if (await this.#isWanted(handle, seen)) return undefined;
    } catch (error) {
      // A shell or a store that does not answer may answer later.
      if (isTransient(error) && this.ports.clock.now() < command.expiresAt) throw error;
      return this.#end(command, outcomeOf(error));
    }
    await this.#stop(command);
    return this.#end(command, STOPPED);
  }

  /** Shows new output to readers. Returns whether the operation still waits. */
  async #isWanted(handle: string, { stdout, stderr }: { stdout: string; stderr: string }): Promise<boolean> {
    const isNew = this.#output?.stdout !== stdout || this.#output.stderr !== stderr;
    this.#output = { stdout, stderr };
    const progress = { stdout: tail(stdout, MAX_PROGRESS), stderr: tail(stderr, MAX_PROGRESS) };
    return this.ports.operations
      .report(handle, isNew ? progress : undefined)
      .catch((error: unknown) => !hasCode(error, "NOT_FOUND"));
  }

  #take(
    command: BackgroundCommand,
    { result: ended, changes }: CommandState & { state: "ended" },
  ): Promise<ToolOutcome | undefined> {
    const { store, isSensitive } = this.ports;
    const { id, repo, since } = command;
    return this.ports.change(id, repo, async (opened) => {
      const { command: current } = store;
      if (current?.id !== id || current.outcome !== undefined) return current?.outcome;
      if (opened.branch.since !== since) throw deletedMeanwhile(repo);
      const tree = opened.tree.without(isSensitive);
      const conflicts = await applyChanges(tree, changes);
      const { items, ...rest } = listed(
        conflicts.length > 0 ? conflicts : changes.map(({ path }) => path),
        (path) => path,
      );
      const outcome: ToolOutcome = {
        result: {
          ...{ exitCode: ended.exitCode, ...shown(ended) },
          ...(conflicts.length > 0 ? { changed: [], conflicts: items, note: NOTE } : { changed: items }),
          ...rest,
        },
      };
      store.save(opened.branch, opened.tree.changes, tree.changes, `${id}/end`, {}, { ...current, outcome });
      opened.tree.adopt(tree);
      return outcome;
    });
  }

  /** Stores the outcome of a command without changes. Returns the outcome that the command has. */
  async #end(command: BackgroundCommand, outcome: ToolOutcome): Promise<ToolOutcome | undefined> {
    const { store } = this.ports;
    const { command: current } = store;
    if (current?.id !== command.id || current.outcome !== undefined) return current?.outcome;
    store.putCommand({ ...current, outcome });
    return outcome;
  }

  async #deliver(command: BackgroundCommand, handle: string, outcome: ToolOutcome): Promise<void> {
    const { store, operations, clock } = this.ports;
    try {
      await operations.complete(handle, outcome).catch((error: unknown) => {
        if (!hasCode(error, "TOO_LARGE")) throw error;
        return operations.complete(handle, TOO_LARGE);
      });
    } catch (error) {
      const hasEnded = hasCode(error, "CONFLICT", "NOT_FOUND");
      if (!hasEnded && clock.now() < command.expiresAt) throw error;
    }
    await this.#stop(command);
    const { command: current } = store;
    if (current?.id !== command.id) return;
    const { handle: _, ...delivered } = current;
    store.putCommand(delivered);
  }

  /** Stops a command, and frees its result in the shell. The time limit of the shell ends a command whose shell does not answer. */
  async #stop(command: BackgroundCommand): Promise<void> {
    await this.#commands
      .stop(command.id, this.#place(command))
      .catch((error: unknown) => console.warn("The command in the background could not be stopped.", error));
  }

  #place({ timeoutMs }: BackgroundCommand) {
    return { workspace: this.ports.workspace(), timeoutMs };
  }
}

/** Returns the pause before the next look at a command that has run for a time. Both in milliseconds. */
export function pauseAfter(elapsed: number): number {
  return Math.min(Math.max(elapsed / 10, MIN_PAUSE_MS), MAX_PAUSE_MS);
}

const NOTE =
  "No file changed: these files changed while the command ran. Look at them, and run the command again.";
const STOPPED: ToolOutcome = {
  error: { code: "CANCELLED", message: "The command was stopped. No file changed." },
};
const LOST: ToolOutcome = {
  error: {
    code: "EXECUTION_FAILED",
    message:
      "The command was lost: its machine did not start it, or restarted before its end. No file changed. The platform did not start it again: start it again if it may run twice.",
  },
};
const TOO_LARGE: ToolOutcome = {
  error: {
    code: "EXECUTION_FAILED",
    message: "The command ended, but its result is too large for this turn. Read it with `shell_output`.",
  },
};

function isTransient(error: unknown): boolean {
  return !(error instanceof DramatisError) || error.code === "UNAVAILABLE" || error.retriable;
}

function outcomeOf(error: unknown): ToolOutcome {
  const { message } = error instanceof Error ? error : new Error(String(error));
  const code = error instanceof DramatisError ? CODES[error.code] : undefined;
  return { error: { code: code ?? "EXECUTION_FAILED", message: `${message} No file changed.` } };
}

const CODES: Record<string, "PERMISSION_DENIED" | "INVALID_INPUT" | "CANCELLED"> = {
  PERMISSION_DENIED: "PERMISSION_DENIED",
  INVALID_INPUT: "INVALID_INPUT",
  TOO_LARGE: "INVALID_INPUT",
  CANCELLED: "CANCELLED",
};

/** Returns the ends of the output of a command, for a result. */
function shown({ stdout, stderr, isCut }: Omit<ShellResult, "exitCode">): JsonObject {
  const ends = { stdout: tail(stdout, MAX_TAIL), stderr: tail(stderr, MAX_TAIL) };
  return { ...ends, ...((isCut || ends.stdout !== stdout || ends.stderr !== stderr) && { isCut: true }) };
}

function tail(text: string, most: number): string {
  return piece(text, text.length - most, text.length);
}
