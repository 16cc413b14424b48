/**
 * The program of the container of a workspace: `node server.js`. It runs one command at a time over the files that the actor names. The actor
 * keeps the files, so a new container continues where another one ended.
 *
 *   POST /blobs  stores contents. The body has frames: the object id, a space, the size in bytes, a line feed, and the content.
 *   POST /exec   `{files: [[mode, oid, path]], skills?: [[path, text]], command, timeoutMs}`. 409 `{missing: [oid]}` if contents are missing. Else
 *                200: a line of JSON with the result and the changes, and then the contents of the changed files in this order.
 *   POST /commands/ID    starts a command in the background, with the body of `/exec`. 204 if the command runs or has ended. The server keeps
 *                        one command in the background: a start stops the command before. Without its connection, a request starts nothing.
 *   GET /commands/ID     202 `{stdout, stderr}` while the command runs, with the end of its output. Later the answer of `/exec`. 404 for
 *                        another command, and after a restart of the server.
 *   DELETE /commands/ID  stops the command, and forgets its result.
 *
 * Variables: `PORT`, `WORKSPACE` (the folder of the files), `SKILLS` (the folder of skills), and `STATE` (a folder for contents and the index). The
 * folders belong to the server: other files in `SKILLS`, and in `WORKSPACE`, are deleted, except those that a `.gitignore` of the workspace names.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import type { ContainerRequest, ContainerResult } from "../../protocol/container.ts";
import { kill, killLeft } from "./processes.ts";
import { putSkills } from "./skills.ts";

type Changes = ContainerResult["changes"];
/** The mode of a file in a tree. Git has no others, except those of nested repositories. */
type Mode = "100644" | "100755" | "120000";

const { PORT = "8080", WORKSPACE = "/workspace", STATE = "/home/node/.dramatis" } = process.env;
/** Bytes of each output stream that are kept: its beginning, and of a command in the background its end. */
const [MAX_OUTPUT_BYTES, MAX_TAIL_BYTES] = [300_000, 65_536];
const MAX_CHANGES = 20_000;
/** Time that the output of a command stays open after its end, in milliseconds: a process that it left may hold the output. */
const OUTPUT_GRACE_MS = 500;
/** Time of one call of Git, and the longest time of a command, in milliseconds. */
const [GIT_MS, MAX_COMMAND_MS] = [60_000, 24 * 3_600_000];
/** Bytes of all changed files. An actor keeps at most 32 MiB. */
const MAX_CHANGED_BYTES = 34 * 1024 * 1024;

const GIT_DIR = join(STATE, "git");
/** Git stores contents as they are, and runs no program of the workspace. */
const GIT_CONFIG =
  "core.autocrlf=false core.hooksPath=/dev/null core.excludesFile=/dev/null core.fsmonitor=false".split(" ");
const GIT_ENV = {
  PATH: process.env.PATH,
  GIT_DIR,
  GIT_WORK_TREE: WORKSPACE,
  GIT_CONFIG_NOSYSTEM: "1",
  LC_ALL: "C",
};
const HOME = join(STATE, "home");
const TMPDIR = join(STATE, "tmp");
const COMMAND_ENV = { PATH: process.env.PATH, HOME, TMPDIR, LANG: "C.UTF-8", TERM: "dumb" };

/** An answer other than 200. */
class Refusal extends Error {
  readonly status: number;
  readonly body: object;

  constructor(status: number, body: object) {
    super(JSON.stringify(body));
    this.status = status;
    this.body = body;
  }
}

async function git(
  args: string[],
  { input = "", env = {} }: { input?: string; env?: Record<string, string> } = {},
): Promise<Buffer> {
  const options = GIT_CONFIG.flatMap((each) => ["-c", each]);
  const child = spawn("git", [...options, ...args], {
    ...{ cwd: WORKSPACE, env: { ...GIT_ENV, ...env } },
    ...{ timeout: GIT_MS, killSignal: "SIGKILL" },
  });
  const output = outputOf(child.stdout, MAX_CHANGED_BYTES);
  const errors = outputOf(child.stderr, MAX_OUTPUT_BYTES);
  child.stdin.on("error", () => undefined).end(input);
  const code = await ended(child, "close");
  const { bytes, isCut } = await output;
  if (isCut)
    throw new Refusal(413, {
      message: `The command changed more than ${MAX_CHANGED_BYTES} bytes of files. Name the files that Git shall ignore in a .gitignore.`,
    });
  if (code !== 0)
    throw new Refusal(422, { message: `git ${args[0]}: ${(await errors).bytes.toString().trim()}` });
  return bytes;
}

function ended(child: ChildProcess, event: "close" | "exit"): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  child.once("error", reject);
  // A shell gives a command that a signal ended an exit code of at least 128.
  child.once(event, (code: number | null) => resolve(code ?? 137));
  return promise;
}

interface Output {
  bytes: Buffer;
  isCut: boolean;
}

async function outputOf(stream: AsyncIterable<Buffer>, limit: number): Promise<Output> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of stream) {
    if (size < limit) parts.push(part.subarray(0, limit - size));
    size += part.byteLength;
  }
  return { bytes: Buffer.concat(parts), isCut: size > limit };
}

/** Writes the end of a stream to `output` while the stream comes. */
async function follow(stream: AsyncIterable<Buffer>, output: Output): Promise<Output> {
  for await (const part of stream) {
    const bytes = Buffer.concat([output.bytes, part]);
    output.isCut ||= bytes.byteLength > MAX_TAIL_BYTES;
    output.bytes = bytes.subarray(-MAX_TAIL_BYTES);
  }
  return output;
}

/** Returns an output as text, without the bytes of a character that is cut. */
function textOf({ bytes, isCut }: Output): string {
  let at = 0;
  // The bytes of a character after its first byte are 10xxxxxx.
  while (isCut && at < 3 && ((bytes[at] ?? 0) & 0xc0) === 0x80) at++;
  return bytes.toString("utf8", at);
}

function prepare(): void {
  const ofGit = ["objects", "refs", "info"].map((name) => join(GIT_DIR, name));
  for (const folder of [WORKSPACE, ...ofGit, HOME, TMPDIR]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(GIT_DIR, "HEAD"), "ref: refs/heads/main\n");
  writeFileSync(join(GIT_DIR, "info/attributes"), "* -text -ident -filter -working-tree-encoding\n");
}

function placeOf(oid: string): string {
  if (!/^[0-9a-f]{40}$/.test(oid))
    throw new Refusal(400, { message: "An object id has 40 hexadecimal digits." });
  return join(GIT_DIR, "objects", oid.slice(0, 2), oid.slice(2));
}

/** Stores the contents of a body of `POST /blobs`. */
function storeBlobs(body: Buffer): void {
  for (let at = 0; at < body.byteLength; ) {
    const end = body.indexOf("\n", at);
    const [oid = "", size = ""] = body.toString("latin1", at, end).split(" ");
    at = end + 1 + Number(size);
    if (end === -1 || !/^\d+$/.test(size) || at > body.byteLength)
      throw new Refusal(400, { message: "A frame is not complete." });
    const object = Buffer.concat([Buffer.from(`blob ${size}\0`), body.subarray(end + 1, at)]);
    if (createHash("sha1").update(object).digest("hex") !== oid)
      throw new Refusal(400, { message: `The content is not that of ${oid}.` });
    const place = placeOf(oid);
    mkdirSync(join(place, ".."), { recursive: true });
    writeFileSync(place, deflateSync(object));
  }
}

/** Brings the files to the state that the request names, and returns the id of their tree. */
async function checkOut({ files, skills }: ContainerRequest): Promise<string> {
  const missing = [...new Set(files.map(([, oid]) => oid))].filter((oid) => !existsSync(placeOf(oid)));
  if (missing.length > 0) throw new Refusal(409, { missing });
  // A command may have begun a repository of its own, which Git would not see as files.
  rmSync(join(WORKSPACE, ".git"), { recursive: true, force: true });
  const env = { GIT_INDEX_FILE: join(GIT_DIR, "next-index") };
  await git(["read-tree", "--empty"], { env });
  const input = files.map(([mode, oid, path]) => `${mode} ${oid}\t${path}\0`).join("");
  await git(["update-index", "-z", "--index-info"], { env, input });
  const tree = (await git(["write-tree"], { env })).toString().trim();
  await git(["read-tree", "--reset", "-u", tree]);
  await git(["clean", "-ffdq"]);
  putSkills(skills);
  return tree;
}

async function changesSince(
  tree: string,
): Promise<Pick<ContainerResult, "changes" | "before"> & { contents: Buffer[] }> {
  await git(["add", "--all"]);
  const next = (await git(["write-tree"])).toString().trim();
  const fields = (await git(["diff-tree", "-r", "-z", "--raw", "--no-renames", tree, next]))
    .toString()
    .split("\0");
  const changed = Array.from({ length: Math.floor(fields.length / 2) }, (_, index) => {
    const [former = "", mode = "", formerOid = "", oid = ""] = (fields[2 * index] ?? "").split(" ");
    const before = former === ":000000" ? null : `${former.slice(1)} ${formerOid}`;
    return { path: fields[2 * index + 1] ?? "", mode, oid, before };
  });
  if (changed.length > MAX_CHANGES)
    throw new Refusal(413, {
      message: `The command changed ${changed.length} files. The limit is ${MAX_CHANGES}.`,
    });
  const nested = changed.find(({ mode }) => mode === "160000");
  if (nested !== undefined)
    throw new Refusal(422, {
      message: `"${nested.path}" is a Git repository of its own. Delete "${nested.path}/.git", or name the folder in a .gitignore.`,
    });
  const input = changed.map(({ mode, oid }) => (mode === "000000" ? "" : `${oid}\n`)).join("");
  const objects = await git(["cat-file", "--batch"], { input });
  let at = 0;
  const contents: Buffer[] = [];
  const changes = changed.map(({ path, mode }): Changes[number] => {
    if (mode === "000000") return [path];
    const end = objects.indexOf("\n", at);
    const size = Number(objects.toString("latin1", at, end).split(" ")[2]);
    contents.push(objects.subarray(end + 1, end + 1 + size));
    at = end + size + 2;
    return [path, mode as Mode, size];
  });
  return { changes, before: changed.map(({ before }) => before), contents };
}

/** Runs a command, and returns its result and its changes. */
async function exec(
  request: ContainerRequest,
  isGone: AbortSignal,
  background?: Pick<Background, "stdout" | "stderr"> & { begun(): void },
): Promise<Buffer[]> {
  const { command, timeoutMs } = request;
  const tree = await checkOut(request).catch((error: unknown) => {
    if (error instanceof Refusal && error.status === 409) throw error;
    // An earlier command has damaged the files of this server. A new container has none of them.
    setTimeout(() => process.exit(1), 100);
    throw new Refusal(503, { message: error instanceof Error ? error.message : String(error) });
  });
  isGone.throwIfAborted();
  const id = randomUUID();
  const child = spawn("bash", ["-c", command], {
    ...{ cwd: WORKSPACE, env: { ...COMMAND_ENV, DRAMATIS_COMMAND: id }, detached: true },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const stop = () => child.pid && kill(-child.pid);
  background?.begun();
  const outputs = background
    ? ([follow(child.stdout, background.stdout), follow(child.stderr, background.stderr)] as const)
    : ([outputOf(child.stdout, MAX_OUTPUT_BYTES), outputOf(child.stderr, MAX_OUTPUT_BYTES)] as const);
  let isLate = false;
  const timer = setTimeout(
    () => {
      isLate = true;
      stop();
    },
    Math.min(timeoutMs, MAX_COMMAND_MS),
  );
  isGone.addEventListener("abort", stop);
  const exitCode = await ended(child, "exit").finally(() => {
    clearTimeout(timer);
    isGone.removeEventListener("abort", stop);
    stop();
    killLeft(`DRAMATIS_COMMAND=${id}`);
  });
  const grace = setTimeout(() => {
    for (const stream of [child.stdout, child.stderr]) stream.push(null);
  }, OUTPUT_GRACE_MS);
  const [stdout, stderr] = await Promise.all(outputs).finally(() => clearTimeout(grace));
  for (const stream of [child.stdout, child.stderr]) stream.destroy();
  isGone.throwIfAborted();
  const none = { changes: [], before: [], contents: [] };
  const { contents, ...changes } = isLate ? none : await changesSince(tree);
  const result: ContainerResult = {
    ...{ exitCode, stdout: textOf(stdout), stderr: textOf(stderr), ...changes },
    ...(isLate ? { isLate } : {}),
    ...(stdout.isCut || stderr.isCut ? { isCut: true } : {}),
  };
  return [Buffer.from(`${JSON.stringify(result)}\n`), ...contents];
}

/** The end of the last command. */
let last: Promise<unknown> = Promise.resolve();

interface Background {
  id: string;
  stop: AbortController;
  stdout: Output;
  stderr: Output;
  /** The answer after its end. Rejects if its changes are refused. */
  answer?: Promise<Buffer[]>;
}
let background: Background | undefined;

/** Starts a command in the background. Rejects if it cannot start. The connection of a process ends with it, so no process of an earlier command starts one. */
async function start(id: string, request: ContainerRequest, isGone: AbortSignal): Promise<void> {
  if (background?.id === id) return;
  background?.stop.abort();
  const output = () => ({ bytes: Buffer.alloc(0), isCut: false });
  const command: Background = { id, stop: new AbortController(), stdout: output(), stderr: output() };
  background = command;
  const begun = Promise.withResolvers<void>();
  const drop = () => command.stop.abort();
  isGone.addEventListener("abort", drop);
  const work = last.then(() => exec(request, command.stop.signal, { ...command, begun: begun.resolve }));
  begun.promise.finally(() => isGone.removeEventListener("abort", drop)).catch(() => undefined);
  last = work.catch(begun.reject).then(() => {
    command.answer = work;
  });
  await begun.promise.catch((error: unknown) => {
    if (background === command) background = undefined;
    throw error;
  });
}

async function answerBackground(
  id: string,
  { method }: IncomingMessage,
  body: Buffer,
  response: ServerResponse,
  isGone: AbortSignal,
): Promise<void> {
  if (method === "POST") {
    // SAFETY: only the actor of the workspace reaches this server.
    await start(id, JSON.parse(body.toString()) as ContainerRequest, isGone);
    response.writeHead(204).end();
  } else if (background?.id !== id) throw new Refusal(404, { message: `There is no command "${id}".` });
  else if (method === "DELETE") {
    background.stop.abort();
    background = undefined;
    response.writeHead(204).end();
  } else if (background.answer === undefined) {
    const { stdout, stderr } = background;
    response.writeHead(202, { "content-type": "application/json" });
    response.end(JSON.stringify({ stdout: textOf(stdout), stderr: textOf(stderr) }));
  } else send(response, await background.answer);
}

function send(response: ServerResponse, parts: Buffer[]): void {
  response.writeHead(200, { "content-type": "application/octet-stream" });
  for (const part of parts) response.write(part);
  response.end();
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const { bytes } = await outputOf(request, Infinity);
  if (request.method === "POST" && request.url === "/blobs") {
    storeBlobs(bytes);
    response.writeHead(204).end();
  } else if (request.method === "POST" && request.url === "/exec") {
    // SAFETY: only the actor of the workspace reaches this server.
    const work = last.then(() => exec(JSON.parse(bytes.toString()) as ContainerRequest, gone.signal));
    last = work.catch(() => undefined);
    send(response, await work);
  } else if (request.url?.startsWith("/commands/"))
    await answerBackground(request.url.slice("/commands/".length), request, bytes, response, gone.signal);
  else response.writeHead(404).end();
}

prepare();
const server = createServer((request, response) => {
  answer(request, response).catch((error: unknown) => {
    if (response.headersSent || response.destroyed) return;
    const { status, body } =
      error instanceof Refusal
        ? error
        : { status: 500, body: { message: error instanceof Error ? error.message : String(error) } };
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
});
server.listen(Number(PORT), () => {
  const address = server.address();
  console.log(`The shell listens on port ${typeof address === "object" ? address?.port : address}.`);
});
