/**
 * Serves a bundle on plain workerd, on 127.0.0.1, with its own database directory.
 *
 * SERVE-1  When the runner exits for any reason, it kills the process by its id.
 */
import { spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import type { Readable } from "node:stream";
import type { Bundle, WorkerConfig } from "./bundle.ts";
import { workerdBinary } from "./paths.ts";

const READY_MS = 30_000;
const CONTROL_FD = 3;
const DATA = "data";

export interface Server {
  port: number;
  pid: number;
  /** Kills the process with SIGKILL. Resolves when it has exited. The databases remain. */
  stop(): Promise<void>;
}

export interface ServeOptions {
  /** A free port by default. */
  port?: number;
  /** Variables of the Worker. With variables, the Worker may also reach servers on this machine. */
  variables?: Readonly<Record<string, string>>;
  /** The folder of static files, for the Worker's binding `ASSETS`. */
  files?: string;
  /** File descriptor for the output of workerd and the Worker; the runner's output by default. */
  output?: number;
}

/** Serves the bundle with the databases in `directory`, and creates missing databases. */
export async function serve(bundle: Bundle, directory: string, options: ServeOptions = {}): Promise<Server> {
  const { output = "inherit" } = options;
  const configFile = join(directory, "config.capnp");
  await mkdir(join(directory, DATA), { recursive: true });
  await writeFile(configFile, capnp(bundle, directory, options));
  const args = ["serve", configFile, `--control-fd=${CONTROL_FD}`];
  const child = spawn(workerdBinary(), args, { stdio: ["ignore", output, output, "pipe"] });
  const kill = () => child.kill("SIGKILL");
  // Runs before other listeners, which may remove the directory.
  process.prependOnceListener("exit", kill);
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const stop = async () => {
    kill();
    await ended;
    process.off("exit", kill);
  };
  try {
    const control = child.stdio[CONTROL_FD] as Readable; // SAFETY: spawned with a pipe at this descriptor.
    const gone = ended.then((): number => {
      throw new Error("workerd exited before it was ready. See its output above.");
    });
    const port = await Promise.race([listeningPort(control), gone]);
    if (child.pid === undefined) throw new Error("A process that listens has an id.");
    return { port, pid: child.pid, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Reads the port from workerd's control descriptor. Each line is a JSON object. */
async function listeningPort(control: Readable): Promise<number> {
  const timeout = AbortSignal.timeout(READY_MS);
  let text = "";
  for await (const chunk of control.iterator({ destroyOnReturn: false })) {
    timeout.throwIfAborted();
    text += String(chunk);
    const match = /"port":\s*(\d+)/.exec(text);
    if (match !== null) return Number(match[1]);
  }
  throw new Error("workerd did not report its port.");
}

/** The network that a Worker's `fetch` reaches: by default only the public network. */
const LOOPBACK = `
    (name = "internet", network = (allow = ["local"])),`;

function staticFiles(folder: string): string {
  return `
    (name = "files", disk = (path = ${quote(folder)})),`;
}

function capnp(
  { config, entry }: Bundle,
  directory: string,
  { port = 0, variables, files }: ServeOptions,
): string {
  const { durable_objects, services } = config;
  const bindings = [
    ...durable_objects.bindings.map(
      ({ name, class_name }) => `(name = ${quote(name)}, durableObjectNamespace = ${quote(class_name)})`,
    ),
    ...services.map(
      ({ binding, entrypoint }) =>
        `(name = ${quote(binding)}, service = (name = "main", entrypoint = ${quote(entrypoint)}))`,
    ),
    ...(files === undefined ? [] : [`(name = "ASSETS", service = "files")`]),
    ...Object.entries(variables ?? {}).map(
      ([name, value]) => `(name = ${quote(name)}, text = ${quote(value)})`,
    ),
  ];
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "data", disk = (path = ${quote(join(directory, DATA))}, writable = true)),${files === undefined ? "" : staticFiles(files)}${variables === undefined ? "" : LOOPBACK}
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const main :Workerd.Worker = (
  modules = [(name = ${quote(basename(entry))}, esModule = embed ${quote(relative(directory, entry))})],
  compatibilityDate = ${quote(config.compatibility_date)},
  compatibilityFlags = [${config.compatibility_flags.map(quote).join(", ")}],
  bindings = [${bindings.join(",\n    ")}],
  durableObjectNamespaces = [${namespaces(config)}],
  durableObjectStorage = (localDisk = "data"),
);
`;
}

function namespaces({ migrations }: WorkerConfig): string {
  return migrations
    .flatMap(({ new_sqlite_classes }) => new_sqlite_classes)
    .map((name) => `(className = ${quote(name)}, uniqueKey = ${quote(name)}, enableSql = true)`)
    .join(",\n    ");
}

function quote(text: string): string {
  return JSON.stringify(text);
}
