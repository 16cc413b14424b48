/**
 * The shell in a container: Bash and the programs of an image, over a copy of the files of a tree.
 *
 * CONTAINER-1  Each workspace has a container of its own. The container has the state of the tree when a command starts, also after a restart.
 * CONTAINER-2  A container gets no sensitive files. A command that leaves one is denied, and changes nothing.
 * CONTAINER-4  The command in the background of a workspace has a container of its own, so it does not wait for other commands.
 * CONTAINER-5  The folder of skills has the skills of the calling agent when a command starts, and nothing else. The tree has none of them.
 * CONTAINER-3  Files that a `.gitignore` of the tree names stay in the container, for later commands, until it sleeps.
 */
import { concat, decode, encode } from "../../../git/bytes.ts";
import { oidOf } from "../../../git/objects.ts";
import { filesOfSkills } from "../../../library/skills/skill.ts";
import {
  type ContainerRequest,
  type ContainerResult,
  containerOutput,
  containerResult,
} from "../../../protocol/container.ts";
import { bytesOf } from "../../../shared/byte-buffer.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError, invalid, tooLarge, unavailable } from "../../../shared/errors.ts";
import { shorten } from "../../../shared/text.ts";
import type { CommandChange } from "../core/command-changes.ts";
import type { WorkingTree } from "../core/working-tree.ts";
import { cancelled, ended, late, type Shell, type ShellCommands, type ShellOptions } from "./shell.ts";

/** A container. Its first request starts it. */
export interface ShellContainerStub {
  fetch(url: string, init: RequestInit): Promise<Response>;
  /** Ends the container, and deletes its files. */
  destroy(): Promise<void>;
}

const BATCH_BYTES = 8 * 1024 * 1024;
/** Bytes of an answer. The server in the container sends at most 34 MiB of files. */
const MAX_ANSWER_BYTES = 48 * 1024 * 1024;
/** Bytes of the JSON in an answer, which is parsed. */
const MAX_JSON_BYTES = 8 * 1024 * 1024;
/** Time that a container has beyond the time of the command: to start, to receive the files, and to compare them. Milliseconds. */
const MARGIN_MS = 120_000;
/** Attempts to send the missing contents. A container may restart in between. */
const ATTEMPTS = 3;
const LINE_FEED = 10;

/** Returns the shell that runs each workspace's commands in the containers that `containerOf` returns. */
export function containerShell(
  containerOf: (workspace: ShellOptions["workspace"]) => ShellContainerStub,
): Shell {
  return {
    async exec(tree, command, { workspace, timeoutMs, signal, skills = [] }) {
      const container = containerOf(workspace);
      const { bytes } = await requestOf(container, { timeoutMs, signal }, async (send) =>
        accepted(await sendFiles(send, "/exec", tree, { command, timeoutMs, skills: filesOfSkills(skills) })),
      );
      const { result, contents } = resultOf(bytes);
      if (result.isLate) return late(result, timeoutMs);
      const next = await changedTree(tree, result, contents);
      if (signal?.aborted) throw cancelled();
      tree.adopt(next);
      return ended(result);
    },
    commands: commandsIn((workspace) => containerOf(backgroundOf(workspace))),
    async remove(workspace) {
      await containerOf(workspace).destroy();
      await containerOf(backgroundOf(workspace)).destroy();
    },
  };
}

/** Returns the name of the container for the command in the background (CONTAINER-4). Ids of workspaces begin otherwise. */
function backgroundOf({ tenant, id }: ShellOptions["workspace"]): ShellOptions["workspace"] {
  return { tenant, id: `background-${id}` };
}

/** The server in the container runs the command, so the command survives restarts of the actor. */
function commandsIn(
  containerOf: (workspace: ShellOptions["workspace"]) => ShellContainerStub,
): ShellCommands {
  const pathOf = (id: string) => `/commands/${encodeURIComponent(id)}`;
  return {
    async start(tree, id, command, { workspace, timeoutMs, skills = [] }) {
      await requestOf(containerOf(workspace), { timeoutMs: 0 }, async (send) => {
        const answer = await sendFiles(send, pathOf(id), tree, {
          ...{ command, timeoutMs, skills: filesOfSkills(skills) },
        });
        if (answer.status === 404)
          throw new DramatisError(
            "UNSUPPORTED",
            "The image of the container is of an older release, without commands in the background. Build the image of this release.",
          );
        return accepted(answer);
      });
    },
    async look(id, { workspace, timeoutMs }) {
      const { status, bytes } = await requestOf(containerOf(workspace), { timeoutMs: 0 }, async (send) => {
        const answer = await send("GET", pathOf(id));
        return answer.status === 404 || answer.status === 202 ? answer : accepted(answer);
      });
      if (status === 404) return { state: "lost" };
      if (status === 202) {
        const output = containerOutput.safeParse(parsed(bytes));
        if (!output.success) throw unknownForm();
        return { state: "running", ...output.data };
      }
      const { result, contents } = resultOf(bytes);
      if (result.isLate) return { state: "ended", result: late(result, timeoutMs), changes: [] };
      return { state: "ended", result: ended(result), changes: [...changesOf(result, contents)] };
    },
    async stop(id, { workspace }) {
      await requestOf(containerOf(workspace), { timeoutMs: 0 }, (send) => send("DELETE", pathOf(id)));
    },
  };
}

interface Answer {
  status: number;
  bytes: Uint8Array;
}

type Send = (method: string, path: string, body?: string | Uint8Array) => Promise<Answer>;

/** Sends requests to a container. Throws `UNAVAILABLE` if it does not answer, and `CANCELLED`. */
async function requestOf(
  container: ShellContainerStub,
  { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal | undefined },
  work: (send: Send) => Promise<Answer>,
): Promise<Answer> {
  const deadline = AbortSignal.timeout(timeoutMs + MARGIN_MS);
  const stop = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
  const send: Send = async (method, path, body) => {
    const init = { method, signal: stop, ...defined({ body }) };
    const response = await container.fetch(`http://container${path}`, init);
    const { status, body: answer } = response;
    const most = status === 200 ? MAX_ANSWER_BYTES : MAX_JSON_BYTES;
    const tooLong = () => brokenAnswer(`Its answer has more than ${most} bytes.`);
    return { status, bytes: await bytesOf(answer, most, tooLong) };
  };
  return work(send).catch(async (error: unknown) => {
    if (signal?.aborted) throw cancelled();
    // A container that hangs would hold up the next commands, too.
    if (deadline.aborted)
      await container
        .destroy()
        .catch((cause: unknown) => console.warn("A container could not be ended.", cause));
    if (error instanceof DramatisError) throw error;
    throw brokenAnswer(error instanceof Error ? error.message : String(error));
  });
}

/** Sends a command with the files of a tree, and the contents that the container does not have. */
async function sendFiles(
  send: Send,
  path: string,
  tree: WorkingTree,
  command: Omit<ContainerRequest, "files">,
): Promise<Answer> {
  const { files, paths } = await manifestOf(tree);
  const request = JSON.stringify({ files, ...command } satisfies ContainerRequest);
  let answer = await send("POST", path, request);
  for (let attempt = 0; answer.status === 409 && attempt < ATTEMPTS; attempt++) {
    const missing = missingOf(answer.bytes, paths);
    for await (const batch of batchesOf(tree, missing)) accepted(await send("POST", "/blobs", batch));
    answer = await send("POST", path, request);
  }
  return answer;
}

/** Returns the result in an answer, and the contents after it. Throws `UNAVAILABLE` for an answer in another form. */
function resultOf(bytes: Uint8Array): { result: ContainerResult; contents: Uint8Array } {
  const end = bytes.indexOf(LINE_FEED);
  const result = containerResult.safeParse(end > MAX_JSON_BYTES ? undefined : parsed(bytes.subarray(0, end)));
  const sizes = result.data?.changes.map(([, , size = 0]) => size) ?? [];
  if (!result.success || sizes.reduce((sum, size) => sum + size, end + 1) !== bytes.byteLength)
    throw unknownForm();
  return { result: result.data, contents: bytes.subarray(end + 1) };
}

/** Returns the files of a tree for the request, and a path of each content. */
async function manifestOf(tree: WorkingTree) {
  const files: [mode: string, oid: string, path: string][] = [];
  const paths = new Map<string, string>();
  for (const path of tree.paths()) {
    const { mode = "100644", oid: known } = tree.entry(path) ?? {};
    const oid = known ?? oidOf({ type: "blob", content: (await tree.file(path)).content });
    files.push([mode, oid, path]);
    paths.set(oid, path);
  }
  return { files, paths };
}

/** Returns the contents of the request that a container names, each once, with their paths. */
function missingOf(answer: Uint8Array, paths: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const { missing } = Object(parsed(answer));
  const named = new Set(Array.isArray(missing) ? missing : []);
  return new Map([...paths].filter(([oid]) => named.has(oid)));
}

/** Returns the bodies that store contents. Each frame has the object id, a space, the size, a line feed, and the content. */
async function* batchesOf(tree: WorkingTree, paths: ReadonlyMap<string, string>) {
  let parts: Uint8Array[] = [];
  let size = 0;
  for (const [oid, path] of paths) {
    const { content } = await tree.file(path);
    parts.push(encode(`${oid} ${content.byteLength}\n`), content);
    size += content.byteLength;
    if (size < BATCH_BYTES) continue;
    yield concat(parts);
    [parts, size] = [[], 0];
  }
  if (parts.length > 0) yield concat(parts);
}

/** Returns a copy of a tree with the changes of a command. Throws if Git refuses a file. */
async function changedTree(
  tree: WorkingTree,
  result: ContainerResult,
  contents: Uint8Array,
): Promise<WorkingTree> {
  const next = tree.fork();
  const changes = [...changesOf(result, contents)];
  next.drop(changes.flatMap(({ path, after }) => (after === null ? [path] : [])));
  for (const { path, after } of changes) if (after !== null) await next.put(path, after);
  return next;
}

function* changesOf({ changes, before }: ContainerResult, contents: Uint8Array): Generator<CommandChange> {
  let at = 0;
  for (const [index, [path, mode, size = 0]] of changes.entries()) {
    const after = mode === undefined ? null : { content: contents.slice(at, at + size), mode };
    yield { path, before: before?.[index] ?? null, after };
    at += size;
  }
}

/** Returns an answer. Throws for an answer that is no success. */
function accepted(answer: Answer): Answer {
  const { status, bytes } = answer;
  if (status === 200 || status === 204) return answer;
  const { message } = Object(parsed(bytes));
  const reason = shorten(typeof message === "string" ? message : decode(bytes), 500);
  if (status === 413) throw tooLarge(reason);
  if (status === 422) throw invalid(`The changes of the command cannot be taken. ${reason}`);
  throw brokenAnswer(`It answered with the status ${status}: ${reason}`);
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decode(bytes));
  } catch {
    return undefined;
  }
}

function unknownForm(): DramatisError {
  return brokenAnswer("It gave an answer in an unknown form.");
}

function brokenAnswer(reason: string): DramatisError {
  return unavailable(
    `The container of the shell does not answer as it should. ${reason} No file changed. Run the command again.`,
    { retriable: true },
  );
}
