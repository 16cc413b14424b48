/**
 * Scripts for the scripted provider. A script is JSON in the user's own message, so concurrent tests stay separate, and
 * a repeated request gets the same rule from any actor.
 */

export interface Script {
  /** Key of all requests, gates and tool runs of this script. */
  key: string;
  /** Replies of the turn. The last reply repeats. */
  replies: ReplyScript[];
  /** Reply to a request that may not call tools; same as any other by default. */
  final?: AttemptScript;
  /** Reply to an order to summarise a history that ends with this script. It is recorded as reply -1. */
  summary?: AttemptScript;
  /** Replies to requests to learn from the turn of this script. They are recorded as reply -2. */
  extraction?: AttemptScript[];
  /** Replies to requests for a title of the turn of this script. They are recorded as reply -3. */
  title?: AttemptScript[];
  /** Words of the user that something can be learned from. */
  says?: string;
}

/** The response to one model call. `attempts` is for repeated calls. The last attempt repeats. */
export type ReplyScript = AttemptScript | { attempts: AttemptScript[] };

/** Steps to stream, before a finish reason and `[DONE]`. */
export type AttemptScript =
  | StepScript[]
  | { status: number; headers?: Record<string, string>; message: string };

export type StepScript =
  /** Sends the text, `times` times as one delta. */
  | { text: string; times?: number }
  /** These mentions, then the script itself: each mentioned agent plays it again. */
  | { pass: string }
  | { call: string; input: unknown; id?: string }
  /** Raw bytes. */
  | { raw: string }
  | { usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number } }
  /** Waits until a test opens the gate. */
  | { gate: string }
  /** Breaks the connection. */
  | { cut: true };

/** The parts of a request that tests read. */
export interface RecordedBody {
  model: string;
  messages: {
    role: string;
    content: string | null;
    tool_calls?: { id: string; function: { name: string; arguments: string } }[];
    tool_call_id?: string;
  }[];
  tools?: { function: { name: string; description: string } }[];
  tool_choice?: string;
}

/** A request that the provider received for a script. */
export interface RequestRecord {
  /** Index of the requested reply, from 0. */
  reply: number;
  /** Number of earlier requests for that reply. */
  attempt: number;
  body: RecordedBody;
}

/** The end of an exchange with the provider: complete, or aborted by either side. */
export interface CloseRecord {
  reply: number;
}

export interface RunRecord {
  tool: string;
  operationId: string;
  input: unknown;
}

export interface SpanRecord {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: { stringValue?: string; intValue?: string } }[];
  status?: { code: number; message: string };
}
