/** The server under test: workerd on one directory and one port over all restarts, and the hit server. */
import { closeSync, openSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Bundle } from "../harness/bundle.ts";
import { type Server, serve } from "../harness/workerd.ts";
import { type History, newHistory } from "./history.ts";
import { HitServer } from "./hit-server.ts";

export class Site {
  /** The history. The site records kills and hits. */
  readonly history: History = newHistory();
  readonly hits = new HitServer(this.history);
  readonly #bundle: Bundle;
  readonly #directory: string;
  readonly #log: number;
  #server: Server | null = null;
  #port = 0;

  private constructor(bundle: Bundle, directory: string) {
    this.#bundle = bundle;
    this.#directory = directory;
    this.#log = openSync(this.#logFile, "a");
  }

  /** Serves the bundle from its own directory. */
  static async open(bundle: Bundle, directory: string): Promise<Site> {
    await mkdir(directory, { recursive: true });
    const site = new Site(bundle, directory);
    await site.hits.start();
    await site.#serve();
    return site;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /**
   * Kills the process with SIGKILL and starts the next one on the same port and directory. Resolves when it accepts
   * connections.
   */
  async kill(): Promise<void> {
    const at = Date.now();
    await this.#server?.stop();
    await this.#serve();
    this.history.kills.push({ at, readyAt: Date.now() });
  }

  async close(): Promise<void> {
    await this.#server?.stop();
    await this.hits.close();
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
    const variables = { DRAMATIS_LOCAL: "1", OPENAI_BASE_URL: `${this.hits.baseUrl}/v1` };
    const options = { port: this.#port, variables, output: this.#log };
    this.#server = await serve(this.#bundle, this.#directory, options);
    this.#port = this.#server.port;
  }
}
