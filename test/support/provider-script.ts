/**
 * How a test tells the scripted provider what to answer: the script stands, as JSON, in the user's own message. So tests
 * that run at once never meet, and a request that is made again, by whichever actor, is answered by the same rule.
 */

export interface Script {
  /** Names everything that the provider keeps of this script: requests, gates and runs of tools. */
  key: string;
  /** One per model reply of the turn; the last also answers all later requests. */
  replies: ReplyScript[];
  /** Answers a request that may not call tools; absent = as any other. */
  final?: AttemptScript;
}

/** What answers one model call. `attempts` is for calls that are made again; the last also answers all later ones. */
export type ReplyScript = AttemptScript | { attempts: AttemptScript[] };

/** Steps are streamed, and a finish reason with `[DONE]` ends them. */
export type AttemptScript =
  | StepScript[]
  | { status: number; headers?: Record<string, string>; message: string };

export type StepScript =
  | { text: string }
  | { call: string; input: unknown; id?: string }
  /** Bytes as they are. */
  | { raw: string }
  | { usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number } }
  /** Goes on when a test opens the gate. */
  | { gate: string }
  /** Breaks the connection. */
  | { cut: true };

/** The parts of a request that tests look at. */
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

/** One request that the provider got for a script. */
export interface RequestRecord {
  /** Which reply of the script it asked for, from 0. */
  reply: number;
  /** From 0: how often that reply had been asked for before. */
  attempt: number;
  body: RecordedBody;
}

/** One run of a tool, as the tool itself reported it. */
export interface RunRecord {
  tool: string;
  operationId: string;
  input: unknown;
}
