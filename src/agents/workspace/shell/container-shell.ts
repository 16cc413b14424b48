/**
 * The shell in a container: Bash and the programs of an image, over a copy of the files of a tree.
 *
 * CONTAINER-1  Each workspace has a container of its own. The container has the state of the tree when a command starts, also after a restart.
 * CONTAINER-2  A container gets no sensitive files. A command that leaves one is denied, and changes nothing.
 * CONTAINER-3  Files that a `.gitignore` of the tree names stay in the container, for later commands, until it sleeps.
 */
import { concat, decode, encode } from "../../../git/bytes.ts";
import { oidOf } from "../../../git/objects.ts";
import { type ContainerRequest, type ContainerResult, containerResult } from "../../../protocol/container.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { shorten } from "../../../shared/text.ts";
import type { WorkingTree } from "../core/working-tree.ts";
import { cancelled, ended, late, type Shell, type ShellOptions } from "./shell.ts";

/** A container. Its first request starts it. */
export interface ShellContainerStub {
  fetch(url: string, init: RequestInit): Promise<Response>;
  /** Ends the container, and deletes its files. */
  destroy(): Promise<void>;
}

/** Bytes of contents in one request. */
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

/** Returns the shell that runs each workspace's commands in the container that `containerOf` returns. */
export function containerShell(
  containerOf: (workspace: ShellOptions["workspace"]) => ShellContainerStub,
): Shell {
  return {
    async exec(tree, command, { workspace, timeoutMs, signal }) {
      const container = containerOf(workspace);
      const deadline = AbortSignal.timeout(timeoutMs + MARGIN_MS);
      const stop = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
      const post = async (path: string, body: string | Uint8Array) => {
        const init = { method: "POST", body, signal: stop };
        const response = await container.fetch(`http://container${path}`, init);
        return {
          status: response.status,
          bytes: await bytesOf(response, response.status === 200 ? MAX_ANSWER_BYTES : MAX_JSON_BYTES),
        };
      };
      const run = async () => {
        const { files, paths } = await manifestOf(tree);
        const request = JSON.stringify({ files, command, timeoutMs } satisfies ContainerRequest);
        let answer = await post("/exec", request);
        for (let attempt = 0; answer.status === 409 && attempt < ATTEMPTS; attempt++) {
          const missing = missingOf(answer.bytes, paths);
          for await (const batch of batchesOf(tree, missing)) accepted(await post("/blobs", batch));
          answer = await post("/exec", request);
        }
        return accepted(answer);
      };
      const bytes = await run().catch(async (error: unknown) => {
        if (signal?.aborted) throw cancelled();
        // A container that hangs would hold up the next commands, too.
        if (deadline.aborted) await container.destroy();
        if (error instanceof DramatisError) throw error;
        throw unavailable(error instanceof Error ? error.message : String(error));
      });
      const end = bytes.indexOf(LINE_FEED);
      const result = containerResult.safeParse(
        end > MAX_JSON_BYTES ? undefined : parsed(bytes.subarray(0, end)),
      );
      const sizes = result.data?.changes.map(([, , size = 0]) => size) ?? [];
      if (!result.success || sizes.reduce((sum, size) => sum + size, end + 1) !== bytes.byteLength)
        throw unavailable("It gave an answer in an unknown form.");
      if (result.data.isLate) return late(result.data, timeoutMs);
      const next = await changedTree(tree, result.data, bytes.subarray(end + 1));
      if (signal?.aborted) throw cancelled();
      tree.adopt(next);
      return ended(result.data);
    },
    remove: (workspace) => containerOf(workspace).destroy(),
  };
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
  { changes }: ContainerResult,
  contents: Uint8Array,
): Promise<WorkingTree> {
  const next = tree.fork();
  next.drop(changes.flatMap(([path, mode]) => (mode === undefined ? [path] : [])));
  let at = 0;
  for (const [path, mode, size] of changes) {
    if (mode === undefined || size === undefined) continue;
    await next.put(path, { content: contents.slice(at, at + size), mode });
    at += size;
  }
  return next;
}

/** Returns the bytes of an answer. Throws for an answer that is no success. */
function accepted({ status, bytes }: { status: number; bytes: Uint8Array }): Uint8Array {
  if (status === 200 || status === 204) return bytes;
  const { message } = Object(parsed(bytes));
  const reason = shorten(typeof message === "string" ? message : decode(bytes), 500);
  if (status === 413) throw new DramatisError("TOO_LARGE", reason);
  if (status === 422)
    throw new DramatisError("INVALID_INPUT", `The changes of the command cannot be taken. ${reason}`);
  throw unavailable(`It answered with the status ${status}: ${reason}`);
}

async function bytesOf(response: Response, most: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += part.byteLength;
    if (size > most) throw unavailable(`Its answer has more than ${most} bytes.`);
    parts.push(part);
  }
  return concat(parts);
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decode(bytes));
  } catch {
    return undefined;
  }
}

function unavailable(reason: string): DramatisError {
  return new DramatisError(
    "UNAVAILABLE",
    `The container of the shell does not answer as it should. ${reason} No file changed. Run the command again.`,
    { retriable: true },
  );
}
