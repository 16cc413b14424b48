/** Runs workerd on one directory and one port over all restarts. Its models are a server on loopback. */
import { closeSync, openSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Bundle } from "../harness/bundle.ts";
import { type Server, serve } from "../harness/workerd.ts";
import type { Kill } from "./history.ts";

export class RestartedServer {
  readonly #bundle: Bundle;
  readonly #directory: string;
  readonly #models: string;
  readonly #log: number;
  #server: Server | null = null;
  #port = 0;

  private constructor(bundle: Bundle, directory: string, models: string) {
    this.#bundle = bundle;
    this.#directory = directory;
    this.#models = models;
    this.#log = openSync(this.#logFile, "a");
  }

  /** Serves the bundle from its own directory. `models` is the address of the model server. */
  static async open(bundle: Bundle, directory: string, models: string): Promise<RestartedServer> {
    await mkdir(directory, { recursive: true });
    const server = new RestartedServer(bundle, directory, models);
    await server.#serve();
    return server;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /**
   * Kills the process with SIGKILL and starts the next process on the same port and directory. Resolves when it accepts
   * connections.
   */
  async kill(): Promise<Kill> {
    const at = Date.now();
    await this.#server?.stop();
    await this.#serve();
    return { at, readyAt: Date.now() };
  }

  async close(): Promise<void> {
    await this.#server?.stop();
    closeSync(this.#log);
  }

  /** Returns the output of workerd and the Worker. */
  output(): string {
    return readFileSync(this.#logFile, "utf8");
  }

  get #logFile(): string {
    return join(this.#directory, "workerd.log");
  }

  async #serve(): Promise<void> {
    const variables = { DRAMATIS_LOCAL: "1", OPENAI_BASE_URL: `${this.#models}/v1` };
    const options = { port: this.#port, variables, output: this.#log };
    this.#server = await serve(this.#bundle, this.#directory, options);
    this.#port = this.#server.port;
  }
}
