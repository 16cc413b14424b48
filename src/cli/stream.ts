/**
 * `dramatis send` and `dramatis tail`: the frames of a turn or of a conversation as they arrive. With `--json`, each frame is one line of JSON.
 *
 * CLITAIL-1  `tail` reconnects after a lost connection, and continues after the last durable frame.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { DramatisClientError } from "../client/errors.ts";
import { framesIn } from "../client/event-stream.ts";
import type { Frame } from "../protocol/frames.ts";
import { kindOf } from "./acts.ts";
import type { Cli, Command, Options } from "./command.ts";
import { CommandFailure, wrongUsage } from "./failure.ts";
import { AnswerPrinter, frameLine } from "./frames.ts";
import { readInput } from "./input.ts";
import { jsonText } from "./text.ts";

/** Waits before attempts to reconnect, in milliseconds. */
const WAITS = [1_000, 2_000, 5_000, 10_000, 30_000, 30_000, 30_000];

async function send(
  cli: Cli,
  [to = "", ...words]: (string | undefined)[],
  options: Options,
): Promise<undefined> {
  const { client, signal, note } = cli;
  const content =
    words.length === 0 || words.join() === "-" ? (await readInput("-")).trim() : words.join(" ");
  if (content === "") throw wrongUsage("The message is empty. Write it after the id, or pipe it in.");
  const kind = kindOf(to);
  if (kind === "run") throw wrongUsage("A run takes no messages. Give the id of a conversation or an agent.");
  const id = kind === "agent" ? (await client.conversations.create({ agentId: to }, { signal })).id : to;
  if (kind === "agent") note(`Conversation ${id}`);
  const { key } = options;
  const printer = new AnswerPrinter(id);
  let turn: string | undefined;
  let from = 0;
  try {
    for await (const frame of client.streamTurn(
      id,
      { content, ...(key !== undefined && { idempotencyKey: key }) },
      { signal },
    )) {
      turn ??= frame.turnId;
      from = frame.seq ?? from;
      await show(cli, frame, printer);
      if (frame.type === "turn.failed")
        throw new CommandFailure(
          `${frame.data.error.code}: ${frame.data.error.message} See: dramatis inspect ${id} ${turn}`,
        );
    }
  } catch (error) {
    const isLost = error instanceof DramatisClientError && error.retriable;
    if ((signal.aborted || isLost) && turn !== undefined)
      note(
        `The turn continues. Follow it with: dramatis tail ${id} --from ${from}. Stop it with: dramatis cancel ${id} ${turn}`,
      );
    throw error;
  }
  return undefined;
}

async function show({ json, write, note }: Cli, frame: Frame, printer: AnswerPrinter): Promise<void> {
  if (json) return write(`${jsonText(frame)}\n`);
  const { text, line } = printer.print(frame);
  if (text !== "") await write(text);
  if (line !== undefined) note(line);
}

async function tail(cli: Cli, [id = ""]: (string | undefined)[], options: Options): Promise<undefined> {
  const { json, write, note, request, signal, width } = cli;
  if (kindOf(id) !== "conversation") throw wrongUsage(`"${id}" names no conversation (conv_…).`);
  let from = options.from;
  if (from !== undefined && !/^[0-9]{1,15}$/.test(from))
    throw wrongUsage(`--from must be the number of an entry, 0 or more, not "${from}".`);
  let isConnected = false;
  let failures = 0;
  for (;;) {
    const query = from === undefined ? "" : `?from=${from}`;
    try {
      const path = `/api/conversations/${encodeURIComponent(id)}/events${query}`;
      const response = await request("GET", path, { accept: "text/event-stream" });
      if (!isConnected) note(`Following ${id}. Ctrl-C ends.`);
      isConnected = true;
      for await (const frame of framesIn(response, signal)) {
        failures = 0;
        if (frame.seq !== undefined) from = String(frame.seq);
        const line = json ? jsonText(frame) : frameLine(frame, id, width);
        if (line !== undefined) await write(`${line}\n`);
      }
    } catch (error) {
      // A first request that fails has a reason that a repetition does not mend.
      if (!isConnected || !(error instanceof DramatisClientError) || !error.retriable) throw error;
    }
    const wait = WAITS[failures++];
    if (wait === undefined)
      throw new CommandFailure(`The connection is lost. Continue with: --from ${from ?? 0}`);
    note("The connection is lost. Reconnecting.");
    await sleep(wait, undefined, { signal });
  }
}

export const STREAM_COMMANDS: readonly Command[] = [
  {
    name: "send",
    about: "sends a message and prints the answer as it arrives; the id of an agent begins a conversation",
    args: {
      "<to>": "id of a conversation or an agent",
      "[message...]": "the text; standard input by default",
    },
    options: { "--key <key>": "idempotency key: the same key and text start one turn" },
    run: send,
  },
  {
    name: "tail",
    about: "follows a conversation until Ctrl-C",
    args: { "<conversation>": "id of the conversation" },
    options: { "--from <seq>": "begin after this entry; with the present by default" },
    run: tail,
  },
];
