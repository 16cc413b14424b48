/** The history of the scenario `background`, as plain data. */
import type { JournalEntryView, MessageView } from "../../../src/protocol/conversation-schemas.ts";
import type { Kill } from "../history.ts";
import type { BackgroundScript, BackgroundTool } from "./script.ts";

export interface SentBatch {
  conversation: string;
  scripts: BackgroundScript[];
  /** Number of times that the batch was sent. */
  tries: number;
  /** Keys of the accepted messages. */
  accepted: string[];
}

/** A request of a tool to the outside. */
export interface ToolHit {
  tool: BackgroundTool;
  call: string;
  operationId: string;
}

/** A delivery of a result by a handle. */
export interface GivenResult {
  call: string;
  operationId: string;
  status: number;
}

/** The answer to the last request of a turn's cycle, with the ids of the operations that had results in the request. */
export interface BackgroundAnswer {
  key: string;
  knows: string[];
}

export interface BackgroundFinal {
  conversation: string;
  journal: JournalEntryView[];
  /** The users' messages, in order. */
  messages: MessageView[];
}

export interface BackgroundHistory {
  batches: SentBatch[];
  hits: ToolHit[];
  given: GivenResult[];
  answers: BackgroundAnswer[];
  kills: Kill[];
  finals: BackgroundFinal[];
}

export function newBackgroundHistory(): BackgroundHistory {
  return { batches: [], hits: [], given: [], answers: [], kills: [], finals: [] };
}
