/** KILL-4 and KILL-5: the frames of each connection, compared with the frames read back. */
import type { Frame } from "../../../src/client/index.ts";
import type { ConnectionLog, History } from "../history.ts";
import type { ConversationRecord, Violation } from "./records.ts";

export function checkConnections(conversation: ConversationRecord, history: History): Violation[] {
  const { id, final } = conversation;
  const found: Violation[] = [];
  const report = (rule: string, what: string) => found.push({ rule, conversation: id, what });
  final.journal.forEach(({ seq }, index) => {
    if (seq !== index + 1) report("KILL-4", `the journal has number ${seq} at position ${index + 1}`);
  });
  const logs = history.connections.filter((log) => log.conversation === id && log.frames.length > 0);
  for (const log of logs) {
    for (const what of framesAmiss(log, conversation)) report("KILL-4", `${log.client}: ${what}`);
    for (const what of deltasAmiss(log)) report("KILL-5", `${log.client}: ${what}`);
  }
  for (const [client, own] of Map.groupBy(logs, (log) => log.client)) {
    for (const what of resumedAmiss(own)) report("KILL-4", `${client}: ${what}`);
  }
  return found;
}

/** Returns a fault if the durable frames of a connection differ from the frames of its scope. The end of the scope may be missing. */
function framesAmiss({ scope, frames }: ConnectionLog, { final, turns }: ConversationRecord): string[] {
  const received = frames.flatMap(({ frame }) => (isFact(frame) ? [frame] : []));
  const after = scope.of === "turn" ? 0 : (scope.from ?? snapshotSeq(frames) ?? 0);
  const turn = scope.of === "turn" && turns.find(({ message }) => message?.script.key === scope.key)?.turnId;
  const expected = final.frames.filter(
    ({ seq = 0, turnId }) => seq > after && (turn === false || turnId === turn),
  );
  const index = received.findIndex((frame, place) => !isEqual(frame, expected[place]));
  if (index < 0) return [];
  const [got, due] = [received[index], expected[index]];
  return [`received ${got?.type} ${got?.seq} instead of ${due?.type} ${due?.seq}`];
}

/** Returns the faults of resumed connections. Each must start at the last number of the client's previous connection. */
function resumedAmiss(logs: readonly ConnectionLog[]): string[] {
  const faults: string[] = [];
  let last: number | null = null;
  for (const { scope, frames } of logs) {
    if (scope.of === "turn") continue;
    if (scope.from !== last) faults.push(`resumed at ${scope.from} after ${last}`);
    last = frames.findLast(({ frame }) => frame.seq !== undefined)?.frame.seq ?? scope.from;
  }
  return faults;
}

function deltasAmiss({ frames }: ConnectionLog): string[] {
  const faults: string[] = [];
  const texts = new Map<string, string>();
  for (const { frame } of frames) {
    const id = frame.messageId ?? "";
    switch (frame.type) {
      case "snapshot":
        for (const { messageId, text } of frame.data.partials) texts.set(messageId, text);
        break;
      case "message.started":
      case "message.reset":
        texts.set(id, "");
        break;
      case "message.delta": {
        const text = texts.get(id) ?? "";
        const { offset } = frame.data;
        if (offset !== text.length)
          faults.push(`${id} continues at offset ${offset} after ${text.length} units`);
        texts.set(id, text + frame.data.text);
        break;
      }
      case "message.completed":
        if (!frame.data.content.startsWith(texts.get(id) ?? "")) {
          faults.push(`${id} was streamed as ${JSON.stringify(texts.get(id))}`);
        }
        break;
    }
  }
  return faults;
}

function snapshotSeq(frames: ConnectionLog["frames"]): number | undefined {
  return frames.find(({ frame }) => frame.type === "snapshot")?.frame.seq;
}

function isFact(frame: Frame): boolean {
  return frame.seq !== undefined && frame.type !== "snapshot";
}

function isEqual(one: Frame | undefined, other: Frame | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
