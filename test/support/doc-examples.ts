/**
 * The code blocks of Markdown pages as files of a project, so that the examples are compiled.
 *
 * If the first line of a block is `// src/NAME`, the block is that file. Blocks with the same name are concatenated.
 * Any other block is a separate module. Words behind the language complete a fragment: `given=a,b` declares names of
 * `GIVEN`, `constructor` puts the block into the constructor of an actor.
 */

/** A block of code. */
export interface Example {
  /** The page's name, such as `docs/http.md`. */
  page: string;
  /** The line of its first line of code, from 1. */
  line: number;
  language: string;
  /** The words behind the language. */
  info: readonly string[];
  text: string;
}

/** Declarations of the names that a fragment may require. */
const GIVEN: Readonly<Record<string, string>> = {
  app: 'declare const app: ReturnType<typeof import("dramatis").dramatis>;',
  audit: 'declare const audit: import("dramatis/adapters").Interceptor;',
  baseUrl: "declare const baseUrl: string;",
  client: 'declare const client: import("dramatis/client").DramatisClient;',
  context: 'declare const context: import("dramatis/sessions").WorkingContext;',
  createWorkersAI: 'import { createWorkersAI } from "workers-ai-provider";',
  dataset: "declare const dataset: AnalyticsEngineDataset;",
  defineModelProfile: 'import { defineModelProfile } from "dramatis";',
  gatewayRequest: `import type { GatewayPorts, ResilientGatewayOptions, ResilientRequest } from "dramatis/adapters";
declare const ports: GatewayPorts;
declare const clock: ResilientGatewayOptions["clock"];
declare const ids: ResilientGatewayOptions["ids"];
declare const profiles: ResilientRequest["profiles"];
declare const body: ResilientRequest["body"];
declare const context: ResilientRequest["context"];
declare const signal: AbortSignal;
declare let text: string;`,
  libraries: 'declare const libraries: import("dramatis").Library[];',
  paymentWebhook: "declare function paymentWebhook(request: Request): Promise<Response>;",
  agent: 'declare const agent: DurableObjectStub<import("dramatis/actors").SessionAgent>;',
  buildWorkingContext: 'import { buildWorkingContext } from "dramatis/sessions";',
  connectConversation: 'import { connectConversation } from "dramatis/client";',
  createClient: 'import { createClient } from "dramatis/client";',
  dramatis: 'import { dramatis } from "dramatis";',
  events: 'declare const events: import("dramatis/sessions").SessionEvent[];',
  gateway: 'declare const gateway: import("dramatis").ModelGateway;',
  id: "declare const id: string;",
  library: 'import { library } from "../library";',
  node: '/// <reference types="node" />',
  pager: 'declare const pager: (token: string) => import("dramatis/channels").ChannelAdapter;',
  profile: 'declare const profile: import("dramatis").ModelProfile;',
  sessionId: "declare const sessionId: string;",
  show: "declare function show(frame: unknown): void;",
  token: "declare const token: string;",
  tokenizer: "declare const tokenizer: { encode(text: string): number[] };",
  useAgent: 'import { useAgent } from "agents/react";',
};

/** Returns the blocks of a page with a language. */
export function examplesIn(page: string, markdown: string): Example[] {
  return [...markdown.matchAll(/^```(\w+)([^\n]*)\n(.*?)^```$/gms)].map((match) => {
    const [, language = "", info = "", text = ""] = match;
    const line = markdown.slice(0, match.index).split("\n").length + 1;
    return { page, line, language, info: info.split(" ").filter((word) => word !== ""), text };
  });
}

/** Returns the files of these examples by their path. Throws for an unknown word or name. */
export function filesOf(examples: readonly Example[]): Map<string, string> {
  const files = new Map<string, string>();
  for (const example of examples) {
    const [, named] = /^\/\/ (src\/[\w.-]+\.tsx?)\b.*\n/.exec(example.text) ?? [];
    const path =
      named ?? `src/pages/${example.page.replaceAll(/\W/g, "-")}-${example.line}.${example.language}`;
    files.set(path, `${files.get(path) ?? ""}${completed(example)}\n`);
  }
  return files;
}

function completed({ page, line, info, text }: Example): string {
  return info.reduce((code, word) => {
    if (word === "constructor") return inConstructor(code);
    const [, names] = /^given=(\S+)$/.exec(word) ?? [];
    if (names === undefined) throw new Error(`${page}:${line}: the word "${word}" has no meaning.`);
    return [...names.split(",").map((name) => declarationOf(name, `${page}:${line}`)), code].join("\n");
  }, `${text}\nexport {};`);
}

function declarationOf(name: string, place: string): string {
  const declaration = GIVEN[name];
  if (declaration === undefined) throw new Error(`${place}: "${name}" is not among the given names.`);
  return declaration;
}

function inConstructor(code: string): string {
  return `import { SessionAgent } from "dramatis/actors";
export class Fragment extends SessionAgent {
  constructor(ctx: DurableObjectState, env: Cloudflare.Env) {
    super(ctx, env);
${code.replace(/export \{\};$/, "")}
  }
}`;
}
