/** KILL-6: recorded and displayed texts. */
import type { Frame } from "../../../src/client/index.ts";
import type { History } from "../history.ts";
import { contentOf, textOf } from "../script.ts";
import { type ConversationRecord, isStopped, type TurnRecord, type Violation } from "./records.ts";

export function checkTexts({ id, turns, final }: ConversationRecord, { shown }: History): Violation[] {
  const found: Violation[] = [];
  const report = (what: string) => found.push({ rule: "KILL-6", conversation: id, what });
  const transcript: [role: string, turnId: string, content: unknown][] = [];
  for (const turn of turns) {
    const { turnId, message } = turn;
    if (message === undefined) continue;
    const { script } = message;
    const said = textsOf(turn);
    const expected = [...script.rounds, []].map((_, call) => textOf(script, call));
    transcript.push(["user", turnId, contentOf(script)]);
    if (turn.frames.some(({ type }) => type === "turn.completed")) {
      if (!isEqual(said, expected)) report(`${turnId} has the texts ${JSON.stringify(said)}`);
      transcript.push(["agent", turnId, expected.at(-1)]);
    }
    if (isStopped(turn)) {
      const { interims, stopped } = stoppedTexts(turn);
      const isPart = isEqual(interims, expected.slice(0, interims.length));
      if (!isPart || !(expected[interims.length] ?? "").startsWith(stopped ?? ""))
        report(`${turnId} was stopped with the texts ${JSON.stringify([...interims, stopped])}`);
      if (stopped !== undefined) transcript.push(["agent", turnId, stopped]);
    }
    const wrong = shown.find(
      ({ turnId: of, text }) => of === turnId && !expected.some((whole) => whole.startsWith(text)),
    );
    if (wrong !== undefined) report(`${turnId} displayed ${JSON.stringify(wrong.text)}`);
  }
  const held = final.transcript.map(({ role, turnId, content }) => [role, turnId, content]);
  if (!isEqual(sorted(held), sorted(transcript))) report("the transcript differs from the scripts");
  return found;
}

/** Returns the texts of a turn: first the texts beside its tool calls, then its answer. */
function textsOf({ frames }: TurnRecord): string[] {
  const completed = frames.flatMap((frame: Frame) =>
    frame.type === "message.completed" ? [frame.data] : [],
  );
  return [...completed.filter(({ interim }) => interim), ...completed.filter(({ interim }) => !interim)].map(
    ({ content }) => content,
  );
}

/** Returns the texts of a stopped turn: the texts beside its tool calls, and the shown part of the next text. */
function stoppedTexts({ frames }: TurnRecord): { interims: string[]; stopped: string | undefined } {
  const completed = frames.flatMap((frame: Frame) =>
    frame.type === "message.completed" ? [frame.data] : [],
  );
  return {
    interims: completed.filter(({ stopped }) => !stopped).map(({ content }) => content),
    stopped: completed.find(({ stopped }) => stopped)?.content,
  };
}

/** Sorts entries, because turns of a conversation end in any order. */
function sorted(entries: readonly unknown[][]): string[] {
  return entries.map((entry) => JSON.stringify(entry)).sort();
}

function isEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
