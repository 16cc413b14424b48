/** The scripted provider's own side, as tests and their tools see it from inside workerd. */
import { env } from "cloudflare:workers";
import type {
  CloseRecord,
  RequestRecord,
  RunRecord,
  Script,
  SpanRecord,
} from "../support/provider-script.ts";

async function control(method: "GET" | "POST", path: string, body?: unknown, signal?: AbortSignal) {
  const response = await fetch(`${env.PROVIDER_CONTROL_URL}${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

/** A tool's report that it runs. */
export async function reportRun(key: string, run: RunRecord): Promise<void> {
  await control("POST", `/runs/${key}`, run);
}

/** Waits until the gate is opened. */
export async function passGate(key: string, gate: string, signal?: AbortSignal): Promise<void> {
  await control("GET", `/gates/${key}/${gate}`, undefined, signal);
}

export async function openGate(key: string, gate: string): Promise<void> {
  await control("POST", `/gates/${key}/${gate}`);
}

/** The runs of a script's tools so far, once there are `count`. */
export async function runsOf(key: string, count = 0): Promise<RunRecord[]> {
  // SAFETY: the provider answers what `provider-script.ts` declares.
  return (await control("GET", `/runs/${key}?count=${count}`)) as RunRecord[];
}

/** A document that the provider serves at a unique address. */
export class ServedDocument {
  readonly #path = `/documents/${crypto.randomUUID()}`;
  readonly url = `${env.PROVIDER_CONTROL_URL}${this.#path}`;

  /** Serves this from now on; `null` answers 503. */
  async set(document: unknown): Promise<void> {
    await control("POST", this.#path, document);
  }

  async reads(): Promise<number> {
    // SAFETY: the provider answers a number here.
    return (await control("GET", `${this.#path}/reads`)) as number;
  }
}

/** A script with its own key, and the provider's records of it. */
export class Play {
  readonly key = crypto.randomUUID();
  /** The content of the user's message. */
  readonly content: string;

  constructor(script: Omit<Script, "key"> | ((key: string) => Omit<Script, "key">)) {
    const rest = typeof script === "function" ? script(this.key) : script;
    this.content = JSON.stringify({ key: this.key, ...rest } satisfies Script);
  }

  /** The requests so far, once there are `count`. */
  async requests(count = 0): Promise<RequestRecord[]> {
    // SAFETY: the provider answers what `provider-script.ts` declares.
    return (await control("GET", `/requests/${this.key}?count=${count}`)) as RequestRecord[];
  }

  /** The ends of exchanges so far, once there are `count`. */
  async closes(count = 0): Promise<CloseRecord[]> {
    // SAFETY: the provider answers what `provider-script.ts` declares.
    return (await control("GET", `/closes/${this.key}?count=${count}`)) as CloseRecord[];
  }

  /** The runs of tools so far, once there are `count`. */
  runs(count = 0): Promise<RunRecord[]> {
    return runsOf(this.key, count);
  }

  /** Resolves once callers have reached the gate, `count` times in all. */
  async reached(gate: string, count = 1): Promise<void> {
    await control("GET", `/gates/${this.key}/${gate}/waiting?count=${count}`);
  }

  open(gate: string): Promise<void> {
    return openGate(this.key, gate);
  }
}

/** The spans of a trace that have been exported, once there are `count`. */
export async function spansOf(traceId: string, count: number): Promise<SpanRecord[]> {
  // SAFETY: the provider answers what `provider-script.ts` declares.
  return (await control("GET", `/traces/${traceId}?count=${count}`)) as SpanRecord[];
}
