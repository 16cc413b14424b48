/** Containers of shells: processes of the container's server on this machine, one per name, as the platform starts them. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { buffer } from "node:stream/consumers";

const SERVER = join(import.meta.dirname, "../../src/container/image/server.ts");

export class ShellContainerProcess {
  readonly #process: ChildProcess;

  private constructor(
    process: ChildProcess,
    readonly folder: string,
    readonly url: string,
  ) {
    this.#process = process;
  }

  /** Resolves when the server has ended. */
  get ended(): Promise<unknown> {
    return this.#process.exitCode === null ? once(this.#process, "exit") : Promise.resolve();
  }

  /** The folder of the files of the workspace. */
  get root(): string {
    return join(this.folder, "workspace");
  }

  static async start(): Promise<ShellContainerProcess> {
    const folder = await mkdtemp(join(tmpdir(), "dramatis-shell-"));
    const env = {
      PATH: process.env.PATH,
      PORT: "0",
      WORKSPACE: join(folder, "workspace"),
      STATE: join(folder, "state"),
      SKILLS: join(folder, "skills"),
    };
    const server = spawn(process.execPath, [SERVER], { env, stdio: ["ignore", "pipe", "inherit"] });
    for await (const line of createInterface(server.stdout)) {
      const port = /port (\d+)/.exec(line)?.[1];
      if (port !== undefined) return new ShellContainerProcess(server, folder, `http://127.0.0.1:${port}`);
    }
    throw new Error("The server of the container did not start.");
  }

  /** Ends the server, and deletes its files. */
  async stop(): Promise<void> {
    this.#process.kill("SIGKILL");
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** A server that starts a machine for each name, and passes requests on to it. */
export class Machines {
  /** Running machines by name. */
  readonly running = new Map<string, Promise<ShellContainerProcess>>();
  readonly #server = createServer((request, response) => {
    this.#answer(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
  });

  async listen(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    // SAFETY: the server listens on a port.
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, name = "", ...path] = (request.url ?? "").split("/");
    const { method = "" } = request;
    if (method === "DELETE" && path.length === 0) {
      await this.stop(name);
      response.end();
      return;
    }
    let machine = this.running.get(name);
    if (machine === undefined) {
      machine = ShellContainerProcess.start();
      this.running.set(name, machine);
    }
    const left = new AbortController();
    response.on("close", () => left.abort());
    const body = await buffer(request);
    const answer = await fetch(`${(await machine).url}/${path.join("/")}`, {
      ...{ method, signal: left.signal },
      ...(body.byteLength > 0 && { body }),
    });
    response.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()));
  }

  /** Stops a machine, if it runs. Its files are lost. */
  async stop(name: string): Promise<void> {
    const machine = await this.running.get(name);
    this.running.delete(name);
    await machine?.stop();
  }

  async close(): Promise<void> {
    for (const name of this.running.keys()) await this.stop(name);
    this.#server.close();
  }
}
