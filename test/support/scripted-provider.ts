/**
 * A provider on loopback for tests that run in another process. It follows the script in the user's message
 * (`provider-script.ts`). Its second port is for the tests:
 *
 *   GET  /requests/KEY?count=N            returns the requests of a script, once there are N
 *   GET  /closes/KEY?count=N              returns the ends of its exchanges, once there are N
 *   POST /runs/KEY                        records a run of a tool
 *   GET  /runs/KEY?count=N                returns the runs, once there are N
 *   GET  /gates/KEY/NAME                  waits until the gate is open
 *   GET  /gates/KEY/NAME/waiting?count=N  waits until N callers wait at the gate
 *   POST /gates/KEY/NAME                  opens the gate
 *   POST /documents/KEY                   stores a document; `null` removes it
 *   GET  /documents/KEY                   returns the document; 503 without one
 *   GET  /documents/KEY/reads             returns the number of reads
 *   GET  /dns?name=NAME&type=TYPE         answers as DNS over HTTPS: names that begin with "inside." have a private address
 *   POST /traces                          takes spans, as a collector of OpenTelemetry
 *   GET  /traces/TRACE?count=N            returns the spans of a trace, once there are N
 */

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { titledMessage } from "../../src/model/title-request.ts";
import { withNotes } from "./notes.ts";
import {
  errorReply,
  type RecordedRequest,
  type Reply,
  type Step,
  startOpenAIServer,
} from "./openai-server.ts";
import type {
  AttemptScript,
  CloseRecord,
  RecordedBody,
  RequestRecord,
  RunRecord,
  Script,
  SpanRecord,
  StepScript,
} from "./provider-script.ts";

export interface ScriptedProvider {
  /** Base URL for a model profile. */
  readonly baseUrl: string;
  readonly controlUrl: string;
  close(): Promise<void>;
}

/** A list with waiting readers. */
class Log<Entry> {
  readonly #entries: Entry[] = [];
  readonly #waiting = new Set<() => void>();

  add(entry: Entry): void {
    this.#entries.push(entry);
    for (const check of this.#waiting) check();
  }

  count(matches: (entry: Entry) => boolean): number {
    return this.#entries.filter(matches).length;
  }

  /** Returns all entries once there are `count`. */
  reach(count: number): Promise<readonly Entry[]> {
    return new Promise((resolve) => {
      const check = () => {
        if (this.#entries.length < count) return;
        this.#waiting.delete(check);
        resolve(this.#entries);
      };
      this.#waiting.add(check);
      check();
    });
  }
}

class Gate {
  readonly arrivals = new Log<true>();
  open = () => {};
  readonly #opened = new Promise<void>((resolve) => {
    this.open = resolve;
  });

  pass(): Promise<void> {
    this.arrivals.add(true);
    return this.#opened;
  }
}

/** The state of one script. */
class Play {
  readonly requests = new Log<RequestRecord>();
  readonly closes = new Log<CloseRecord>();
  readonly runs = new Log<RunRecord>();
  readonly spans = new Log<SpanRecord>();
  readonly #gates = new Map<string, Gate>();
  document: unknown = null;
  documentReads = 0;

  gate(name: string): Gate {
    const gate = this.#gates.get(name) ?? new Gate();
    this.#gates.set(name, gate);
    return gate;
  }
}

export async function startScriptedProvider(): Promise<ScriptedProvider> {
  const plays = new Map<string, Play>();
  const playOf = (key: string): Play => {
    const play = plays.get(key) ?? new Play();
    plays.set(key, play);
    return play;
  };
  const models = await startOpenAIServer({ script: (request) => scriptedReply(request, playOf) });
  const control = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    answerControl(request, response, playOf).catch((error: unknown) => {
      response.writeHead(500).end(String(error));
    });
  });
  control.listen(0, "127.0.0.1");
  await once(control, "listening");
  const address = control.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    baseUrl: models.baseUrl,
    controlUrl: `http://127.0.0.1:${port}`,
    async close() {
      const closed = once(control, "close");
      control.close();
      control.closeAllConnections();
      await Promise.all([closed, models.close()]);
    },
  };
}

/** The index of a summary among the replies of a script. */
const SUMMARY = -1;
/** The index of an extraction among them. */
const EXTRACTION = -2;
/** The index of a title among them. */
const TITLE = -3;

function scriptedReply(request: RecordedRequest, playOf: (key: string) => Play): Reply {
  // SAFETY: only tests send requests here, and they assert the parts of the body that they use.
  const sent = request.body as unknown as RecordedBody;
  const body = { ...sent, messages: withNotes(sent.messages) };
  const start = body.messages.findLastIndex(({ role, content }) => role === "user" && !isResult(content));
  const script = parseScript(body.messages[start]?.content);
  if (script === null) return backgroundReply(body, playOf) ?? summaryReply(body, playOf);
  const reply = body.messages.slice(start).filter(({ role }) => role === "assistant").length;
  const play = playOf(script.key);
  const attempt = play.requests.count((before) => before.reply === reply);
  play.requests.add({ reply, attempt, body });
  void request.closed.then(() => play.closes.add({ reply }));
  const isFinal = body.tools === undefined || body.tool_choice === "none";
  const chosen = (isFinal ? script.final : undefined) ?? script.replies[reply] ?? script.replies.at(-1);
  const attempts = chosen === undefined ? [] : "attempts" in chosen ? chosen.attempts : [chosen];
  const answer = attempts[attempt] ?? attempts.at(-1);
  return answer === undefined
    ? errorReply(400, { message: "The script has no reply." })
    : toReply(passedOn(answer, script), play, reply);
}

/** Reports whether a message of a user has results of tools, as Anthropic's requests do. */
function isResult(content: unknown): boolean {
  return Array.isArray(content) && content.some(({ type }) => type === "tool_result");
}

/** Replies to a request to learn from a transcript, or for a title, as its script says; `null` for other requests. */
function backgroundReply(body: RecordedBody, playOf: (key: string) => Play): Reply | null {
  const order = body.messages.at(-1)?.content ?? "";
  const [, line = ""] = /\nTranscript:\n(.*)/.exec(order) ?? [];
  const titled = titledMessage(order);
  const [text, reply] = titled === undefined ? [textOf(line), EXTRACTION] : [titled, TITLE];
  const script = text === "" ? null : parseScript(text.slice(text.indexOf("{")));
  const attempts = reply === TITLE ? script?.title : script?.extraction;
  if (script === null || attempts === undefined) return null;
  const play = playOf(script.key);
  const attempt = play.requests.count((before) => before.reply === reply);
  play.requests.add({ reply, attempt, body });
  const answer = attempts[attempt] ?? attempts.at(-1);
  return answer === undefined ? null : toReply(answer, play, reply);
}

function textOf(line: string): string {
  return line === "" ? "" : String(JSON.parse(line).text);
}

/** Replies to an order to summarise with the reply of the newest earlier script. */
function summaryReply(body: RecordedBody, playOf: (key: string) => Play): Reply {
  const scripts = body.messages.map(({ role, content }) => (role === "user" ? parseScript(content) : null));
  const script = scripts.findLast((found) => found !== null);
  if (script?.summary === undefined)
    return errorReply(400, { message: "The last user message is no script." });
  const play = playOf(script.key);
  play.requests.add({ reply: SUMMARY, attempt: 0, body });
  return toReply(script.summary, play, SUMMARY);
}

/** Returns the script of a message, from its text or from one of its text parts, behind the name of its speaker and mentions. */
function parseScript(content: unknown): Script | null {
  const texts: unknown[] = Array.isArray(content) ? content.map(({ text = "" }) => text) : [content];
  const scripts = texts.map((text) =>
    scriptIn(
      String(text)
        .replace(/^(?:user|agent|workflow) "[^"]*": /, "")
        .replace(/^(?:@[a-z0-9-]+ )+/, ""),
    ),
  );
  return scripts.find((script) => script !== null) ?? null;
}

function scriptIn(text: string): Script | null {
  try {
    const script: Script = JSON.parse(text);
    return typeof script.key === "string" && Array.isArray(script.replies) ? script : null;
  } catch {
    return null;
  }
}

/** Returns an answer with the script after its mentions, if the answer requests it. */
function passedOn(answer: AttemptScript, script: Script): AttemptScript {
  if (!Array.isArray(answer)) return answer;
  const text = JSON.stringify(script);
  return answer.map((step) => ("pass" in step ? { pass: `${step.pass} ${text}` } : step));
}

function toReply(answer: AttemptScript, play: Play, reply: number): Reply {
  if (!Array.isArray(answer)) return errorReply(answer.status, { message: answer.message }, answer.headers);
  let calls = 0;
  const steps = answer.map((step) =>
    toStep(step, play, () => ({ index: calls, id: `call_${reply}_${calls++}` })),
  );
  return { kind: "stream", steps: [...steps, { finish: calls > 0 ? "tool_calls" : "stop" }] };
}

function toStep(step: StepScript, play: Play, nextCall: () => { index: number; id: string }): Step {
  if ("call" in step) {
    const next = nextCall();
    const input = typeof step.input === "string" ? step.input : JSON.stringify(step.input);
    return { toolCall: { index: next.index, id: step.id ?? next.id, name: step.call, arguments: input } };
  }
  if ("pass" in step) return { text: step.pass };
  if ("text" in step) return { text: step.text.repeat(step.times ?? 1) };
  if (!("gate" in step)) return step;
  const gate = play.gate(step.gate);
  // The gate is passed when the stream reaches it, not when the script is parsed.
  return {
    get gate() {
      return gate.pass();
    },
  };
}

async function answerControl(
  request: IncomingMessage,
  response: ServerResponse,
  playOf: (key: string) => Play,
): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? "", "http://control");
  const [, what, key = "", name = "", detail] = pathname.split("/").map(decodeURIComponent);
  const play = playOf(key);
  const count = Number(searchParams.get("count") ?? 0);
  const json = (value: unknown) =>
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
  switch (`${request.method} ${what}${detail === undefined ? "" : `/${detail}`}`) {
    case "GET requests":
      return void json(await play.requests.reach(count));
    case "GET closes":
      return void json(await play.closes.reach(count));
    case "GET runs":
      return void json(await play.runs.reach(count));
    case "POST runs":
      play.runs.add(await readJson(request));
      return void json(null);
    case "GET gates":
      await play.gate(name).pass();
      return void json(null);
    case "GET gates/waiting":
      return void json((await play.gate(name).arrivals.reach(count)).length);
    case "POST documents":
      play.document = await readJson(request);
      return void json(null);
    case "POST traces":
      for (const span of spansIn(await readJson(request))) playOf(span.traceId).spans.add(span);
      return void json({});
    case "GET traces":
      return void json(await play.spans.reach(count));
    case "GET dns": {
      const inside = searchParams.get("name")?.startsWith("inside.") && searchParams.get("type") === "A";
      return void json({ Status: 0, ...(inside && { Answer: [{ type: 1, data: "10.0.0.7" }] }) });
    }
    case "GET documents":
      if (name === "reads") return void json(play.documentReads);
      play.documentReads += 1;
      return void (play.document === null ? response.writeHead(503).end() : json(play.document));
    case "POST gates":
      play.gate(name).open();
      return void json(null);
    default:
      response.writeHead(404).end();
  }
}

async function readJson(request: IncomingMessage) {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString("utf8"));
}

function spansIn({ resourceSpans }: ExportRequest): SpanRecord[] {
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
}

interface ExportRequest {
  resourceSpans: { scopeSpans: { spans: SpanRecord[] }[] }[];
}
