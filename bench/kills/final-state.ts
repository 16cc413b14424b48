/** Reads the final state of a conversation after all of its turns have ended. */

import { setTimeout as pause } from "node:timers/promises";
import { framesIn } from "../../src/client/event-stream.ts";
import { createClient, type Frame, type MessageView } from "../../src/client/index.ts";
import type { JournalEntryView } from "../../src/protocol/conversation-schemas.ts";
import { endsCompaction } from "./check/compactions.ts";
import type { FinalState } from "./history.ts";

/** Journal entries without a frame. */
const SILENT = [
  "conversation.started",
  "turn.resumed",
  "tool.interrupted",
  "context.compaction.started",
  "context.compaction.failed",
  "context.compacted",
];
const PAGE = 200;
/** Time between two reads of a journal while a compaction runs, in milliseconds. */
const POLL_MS = 200;

/** Waits for the end of all turns and reads the state. Call it after the last message. */
export async function readFinalState(
  baseUrl: string,
  conversation: string,
  signal: AbortSignal,
): Promise<FinalState> {
  const address = `${baseUrl}/api/conversations/${conversation}`;
  const client = createClient({ baseUrl });
  const readAt = Date.now();
  const frames: Frame[] = [];
  let journal: JournalEntryView[] | undefined;
  for await (const frame of framesIn(await fetch(`${address}/events?from=0`, { signal }), signal)) {
    if (frame.seq === undefined) continue;
    frames.push(frame);
    if (journal === undefined && isTerminal(frame)) {
      const { gate } = await client.conversations.get(conversation, { signal });
      if (gate === "idle") journal = await restingJournal(address, signal);
    }
    const last = journal?.findLast(({ type }) => !SILENT.includes(type));
    if (journal !== undefined && frame.seq >= (last?.seq ?? 0)) {
      return {
        conversation,
        readAt,
        journal,
        frames,
        transcript: await readTranscript(baseUrl, conversation),
      };
    }
  }
  throw new Error(`The events of ${conversation} ended.`);
}

function isTerminal({ type }: Frame): boolean {
  return type === "turn.completed" || type === "turn.failed";
}

/** Reads the journal when no compaction runs. */
async function restingJournal(address: string, signal: AbortSignal): Promise<JournalEntryView[]> {
  for (;;) {
    const journal = await readJournal(address, signal);
    const last = journal.findLast(({ type }) => type.startsWith("context."));
    if (last === undefined || endsCompaction(last)) return journal;
    await pause(POLL_MS, undefined, { signal });
  }
}

async function readJournal(address: string, signal: AbortSignal): Promise<JournalEntryView[]> {
  const entries: JournalEntryView[] = [];
  for (let cursor: string | undefined = ""; cursor !== undefined; ) {
    const query = new URLSearchParams({ limit: String(PAGE), ...(cursor === "" ? {} : { cursor }) });
    const response = await fetch(`${address}/journal?${query}`, { signal });
    // SAFETY: the server's own answer to this route.
    const page = (await response.json()) as { entries: JournalEntryView[]; nextCursor?: string };
    entries.push(...page.entries);
    cursor = page.nextCursor;
  }
  return entries;
}

async function readTranscript(baseUrl: string, conversation: string): Promise<MessageView[]> {
  const client = createClient({ baseUrl });
  const transcript: MessageView[] = [];
  for (let cursor: string | undefined = ""; cursor !== undefined; ) {
    const page = await client.messages.list(conversation, {
      limit: PAGE,
      ...(cursor === "" ? {} : { cursor }),
    });
    transcript.push(...page.messages);
    cursor = page.nextCursor;
  }
  return transcript;
}
