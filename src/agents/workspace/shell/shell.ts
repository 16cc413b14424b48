/**
 * The port of shells, and the embedded shell: Bash and Unix tools in JavaScript over the files of a tree. It has no network and no processes.
 *
 * SHELL-1  A command sees the repository in `/workspace`, and `/tmp` in memory. The files of skills are in `/skills` (SKILL-5). It cannot reach other files, the network, or variables of the Worker.
 * SHELL-2  A command ends on its time limit, with the exit code 124, and on cancellation. Each stream is cut at `MAX_OUTPUT`.
 *          The embedded shell also ends a command after `MAX_STEPS`, because the clock of a Worker stops while code computes.
 * SHELL-4  A command sees no sensitive files of the tree. A command that opens one by its name, or by a link, is denied and changes nothing.
 * BACKGROUND-1  A command in the background begins with a copy of the tree. The tree stays as it is until the changes are applied.
 * BACKGROUND-2  A command in the background runs at most once. `lost` is the state of a command whose machine or actor has stopped.
 * SHELL-3  A command changes the tree only when it ends by itself. After a time-out, a cancellation or an error the tree is as before.
 */
import type { IFileSystem } from "just-bash/browser";
import { filesOfSkills, SKILLS_ROOT } from "../../../library/skills/skill.ts";
import type { Skill } from "../../../protocol/definitions.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { shortenToJson, wholeLength } from "../../../shared/text.ts";
import type { CommandChange } from "../core/command-changes.ts";
import { ROOT } from "../core/tree-path.ts";
import type { FileMode, WorkingTree } from "../core/working-tree.ts";

export interface ShellOptions {
  /** A shell may keep a machine for each workspace. */
  workspace: { tenant: string; id: string };
  timeoutMs: number;
  signal?: AbortSignal;
  skills?: readonly Skill[] | undefined;
}

export interface ShellResult {
  exitCode: number;
  stdout: string;
  stderr: string;
  /** The output was longer, and its end is left out. */
  isCut?: true;
}

/** The result of a command before its output is cut. */
type RawResult = Omit<ShellResult, "isCut"> & { isCut?: true | undefined };

/** Runs commands over a tree, and changes the tree. */
export interface Shell {
  /** Returns the exit code 124 on a time-out. Throws `CANCELLED`, and `PERMISSION_DENIED` for a sensitive file. */
  exec(tree: WorkingTree, command: string, options: ShellOptions): Promise<ShellResult>;
  /** Runs commands in the background. Absent: they run in the actor. */
  commands?: ShellCommands;
  /** Deletes what the shell keeps for a workspace. */
  remove?(workspace: ShellOptions["workspace"]): Promise<void>;
}

export type CommandState =
  | { state: "running"; stdout: string; stderr: string }
  | { state: "ended"; result: ShellResult; changes: readonly CommandChange[] }
  | { state: "lost" };

export type CommandPlace = Pick<ShellOptions, "workspace" | "timeoutMs">;

/** Runs a command of a workspace in the background, by an id. */
export interface ShellCommands {
  /** Resolves when the command runs. */
  start(
    tree: WorkingTree,
    id: string,
    command: string,
    options: CommandPlace & Pick<ShellOptions, "skills">,
  ): Promise<void>;
  /** Returns the state of the command. Throws `UNAVAILABLE` if the state is unknown, and any other error if the changes are refused. */
  look(id: string, options: CommandPlace): Promise<CommandState>;
  /** Stops the command, and forgets its result. */
  stop(id: string, options: CommandPlace): Promise<void>;
}

/** Characters of each stream that a result keeps, and their bytes as JSON. A row of SQLite holds 2 MB. */
export const MAX_OUTPUT = 262_144;
const MAX_OUTPUT_BYTES = 600_000;
const MIB = 1024 * 1024;
/** Symbolic links in a row. */
const MAX_LINKS = 40;
/** Bytes of the output of a command, of its memory, and of one text. */
const [MAX_HELD_BYTES, MAX_LIVE_BYTES, MAX_TEXT_BYTES] = [64 * MIB, 16 * MIB, 8 * MIB];
/** Steps of a command in `awk`, `sed`, `jq` and Bash. About three seconds of computing. */
const MAX_STEPS = 10_000_000;
/** Bytes of a file whose reading counts as a step. */
const STEP_BYTES = 16;

/** The shell that every Worker has. Its code is loaded with the first command. */
export const embeddedShell: Shell = {
  async exec(tree, command, { timeoutMs, signal, skills = [] }) {
    const { Bash, InMemoryFs } = await import("just-bash/browser");
    let denial: unknown;
    let steps = 0;
    let isOver = false;
    const count = (more: number) => {
      steps += more;
      if (steps > MAX_STEPS) throw new Error("too many steps");
    };
    const read = <Content>(content: Content) => {
      // A text or bytes.
      if (!isOver) count(Object(content).length / STEP_BYTES);
      return content;
    };

    /** Writes as Unix does: through symbolic links, and with the mode of the file. */
    class TreeFs extends InMemoryFs {
      override async writeFile(...[path, content, options]: Parameters<IFileSystem["writeFile"]>) {
        const place = await this.#target(path);
        const mode = await this.#modeOf(place);
        await super.writeFile(place, content, options);
        if (mode !== undefined) await this.chmod(place, mode);
      }

      override async appendFile(...[path, content, options]: Parameters<IFileSystem["appendFile"]>) {
        await super.appendFile(await this.#target(path), content, options);
      }

      override async cp(...[from, to, options]: Parameters<IFileSystem["cp"]>) {
        await super.cp(from, await this.#target(to), options);
      }

      override async mkdir(...[path, options]: Parameters<IFileSystem["mkdir"]>) {
        await super.mkdir(await this.#target(path), options);
      }

      override async readFile(...[path, options]: Parameters<IFileSystem["readFile"]>) {
        await this.#target(path);
        return read(await super.readFile(path, options));
      }

      override async readFileBytes(path: string) {
        await this.#target(path);
        return read(await super.readFileBytes(path));
      }

      override async readFileBuffer(path: string) {
        await this.#target(path);
        return read(await super.readFileBuffer(path));
      }

      override async stat(path: string) {
        await this.#target(path);
        return super.stat(path);
      }

      async #modeOf(path: string): Promise<number | undefined> {
        return (await this.exists(path)) ? (await this.stat(path)).mode : undefined;
      }

      /** Returns the place that a path names, after the links of its folders and of its last segment. Throws for a sensitive file (SHELL-4). */
      async #target(given: string): Promise<string> {
        let path = given;
        for (let links = 0; links < MAX_LINKS; links += 1) {
          const at = path.lastIndexOf("/");
          const folder = path.slice(0, at);
          const parent = folder !== "" && (await this.exists(folder)) ? await this.realpath(folder) : folder;
          const place = `${parent}${path.slice(at)}`;
          const isLink = await this.lstat(place).then(
            ({ isSymbolicLink }) => isSymbolicLink,
            () => false,
          );
          if (!isLink) return this.#checked(place);
          path = this.resolvePath(parent, await this.readlink(place));
        }
        throw new Error(`ELOOP: too many symbolic links, open '${given}'`);
      }

      #checked(place: string): string {
        try {
          if (place.startsWith(`${ROOT}/`)) tree.checkAllowed(place.slice(ROOT.length + 1));
          return place;
        } catch (error) {
          denial = error;
          throw new Error(`EACCES: permission denied, open '${place}'`);
        }
      }
    }

    const files = new TreeFs();
    await files.mkdir("/tmp", { recursive: true });
    await files.mkdir(ROOT);
    for (const [path, content] of filesOfSkills(skills))
      files.writeFileSync(`${SKILLS_ROOT}/${path}`, content);
    const unread = new Map<Uint8Array, string>();
    for (const path of tree.paths()) {
      const place = `${ROOT}/${path}`;
      const mode = tree.entry(path)?.mode ?? "100644";
      if (mode === "120000") {
        await files.symlink(decode((await tree.file(path)).content), place);
        continue;
      }
      const load = async () => {
        if (!isOver) return (await tree.file(path)).content.slice();
        // The command has not read the file, so its content is not needed.
        const mark = new Uint8Array();
        unread.set(mark, path);
        return mark;
      };
      files.writeFileLazy(place, load, { mode: mode === "100755" ? 0o755 : 0o644 });
    }
    const bash = new Bash({
      fs: files,
      cwd: ROOT,
      env: { HOME: "/tmp", TMPDIR: "/tmp" },
      defenseInDepth: false,
      // The library reports each step. Its own limits count the rounds of one loop, so nested loops compute for hours.
      coverage: {
        hit: () => count(1),
      },
      executionLimits: {
        maxExecutionTimeMs: timeoutMs,
        maxOutputSize: MAX_HELD_BYTES,
        maxLiveBytes: MAX_LIVE_BYTES,
        maxInputBytes: MAX_LIVE_BYTES,
        maxStringLength: MAX_TEXT_BYTES,
      },
    });
    const deadline = new AbortController();
    const start = Date.now();
    const timer = setTimeout(() => deadline.abort(), timeoutMs);
    const stop = signal === undefined ? deadline.signal : AbortSignal.any([signal, deadline.signal]);
    // The library ends a command at its own deadline, too, because a loop leaves no time for the timer.
    const isStopped = () =>
      denial !== undefined || steps > MAX_STEPS || stop.aborted || Date.now() - start >= timeoutMs;
    const run = async () => {
      const result = await bash.exec(command, { signal: stop });
      isOver = true;
      return { ...result, next: await takeOver(tree, files, unread, isStopped) };
    };
    const result = await run()
      .catch((error: unknown) => {
        if (steps <= MAX_STEPS) throw denial ?? error;
        return { exitCode: 124, stdout: "", stderr: "", next: undefined };
      })
      .finally(() => clearTimeout(timer));
    if (signal?.aborted) throw cancelled();
    if (denial !== undefined) throw denial;
    if (steps > MAX_STEPS)
      return stopped(
        result,
        `The command needs more than ${MAX_STEPS} steps, and no file changed. Run less at once.`,
      );
    if (result.next === undefined) return late(result, timeoutMs);
    tree.adopt(result.next);
    return ended(result);
  },
};

export function cancelled(): DramatisError {
  return new DramatisError("CANCELLED", "The command was cancelled. No file changed.");
}

/** Returns the result of a command that ended, with its output within the limits (SHELL-2). */
export function ended({ exitCode, ...result }: RawResult): ShellResult {
  const [stdout, stderr] = [shortened(result.stdout), shortened(result.stderr)];
  const isCut = result.isCut || stdout !== result.stdout || stderr !== result.stderr;
  return { exitCode, stdout, stderr, ...(isCut ? { isCut: true } : {}) };
}

/** Returns the result of a command that did not end within its time. */
export function late(result: RawResult, timeoutMs: number): ShellResult {
  return stopped(
    result,
    `The command did not end within ${timeoutMs} ms, and no file changed. Run less at once, or set a longer \`timeoutMs\`.`,
  );
}

function stopped(result: RawResult, reason: string): ShellResult {
  return { ...ended(result), exitCode: 124, stderr: reason };
}

/**
 * Returns a tree equal to the files of the shell; `undefined` if the command is stopped before its end. Throws if Git refuses a file. `unread`
 * has the former paths of contents that the command has not read.
 */
async function takeOver(
  tree: WorkingTree,
  files: IFileSystem,
  unread: ReadonlyMap<Uint8Array, string>,
  isStopped: () => boolean,
): Promise<WorkingTree | undefined> {
  const next = tree.fork();
  const left = new Map<string, { content: Uint8Array; mode: FileMode; former?: string }>();
  for (const place of files.getAllPaths()) {
    if (isStopped()) return undefined;
    if (!place.startsWith(`${ROOT}/`)) continue;
    const path = place.slice(ROOT.length + 1);
    const { isFile, isSymbolicLink, mode } = await files.lstat(place);
    if (isSymbolicLink)
      left.set(path, { content: new TextEncoder().encode(await files.readlink(place)), mode: "120000" });
    if (!isFile) continue;
    const content = await files.readFileBuffer(place);
    const former = unread.get(content);
    left.set(path, {
      ...{ content, mode: mode & 0o111 ? "100755" : "100644" },
      ...(former === undefined ? {} : { former }),
    });
  }
  next.drop(tree.paths().filter((path) => !left.has(path)));
  for (const [path, { content, mode, former }] of left) {
    if (isStopped()) return undefined;
    if (former === path && mode === tree.entry(path)?.mode) continue;
    await next.put(path, {
      content: former === undefined ? content : (await tree.file(former)).content,
      mode,
    });
  }
  return isStopped() ? undefined : next;
}

function decode(content: Uint8Array): string {
  return new TextDecoder().decode(content);
}

function shortened(text: string): string {
  const part = text.slice(0, wholeLength(text, MAX_OUTPUT));
  return shortenToJson(part, MAX_OUTPUT_BYTES);
}
