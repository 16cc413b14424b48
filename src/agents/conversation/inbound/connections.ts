/**
 * WebSocket clients of a conversation. Connections hibernate, so each connection stores the data for a wake in its own state.
 *
 * CONN-1  A connection first gets a snapshot or, with `from`, the frames it missed. Then it gets each frame once, in order. A client that
 *         does not read is closed with 1013, and resumes from its last `seq`.
 * CONN-2  Frames from clients are validated. A bad frame is answered with `error` and has no effect. Answers count as sent frames
 *         (READER-4).
 * CONN-3  When its principal expires, a connection is closed with 4401, even if it is idle. After that moment, it sends and accepts no
 *         frames.
 * CONN-4  A connection that exceeds its allowance gets an error and is closed with 4429. Its further frames are dropped.
 * CONN-5  If a connection cannot be opened now, it is closed with 1013, and its client reconnects. If it can never be opened, it is closed
 *         with 4404.
 */
import type { WSMessage } from "agents";
import type { Clock } from "../../../ports/clock.ts";
import { CONTINUE_LATER_CLOSE, FLOOD_CLOSE, type Frame, NOT_FOUND_CLOSE } from "../../../protocol/frames.ts";
import type { WireError } from "../../../protocol/move-schemas.ts";
import type { ClientFrame, StartTurn, StopOptions } from "../../../protocol/requests.ts";
import type { StartedTurn } from "../../../protocol/signals.ts";
import type { SocketOptions } from "../../../protocol/upgrade-request.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError, toErrorData } from "../../../shared/errors.ts";
import { hasExpired, type Principal } from "../../../shared/principal.ts";
import { admitMessage, giveBack } from "../../base/sockets/admission.ts";
import { type Client, closeUnauthorized } from "../../base/sockets/client.ts";
import { NEW_FLOW } from "../../base/sockets/socket-reader.ts";
import type { SocketReaders } from "../../base/sockets/socket-readers.ts";
import { ephemeralFrame } from "../core/frames.ts";
import { wireError } from "../core/view-members.ts";
import type { CursorStart, FrameCursor } from "../reads/frame-cursor.ts";
import type { Claims } from "./claims.ts";
import { parseClientFrame, parseMessage, refInHead, refOf } from "./client-frames.ts";
import { MAX_READERS } from "./socket-limits.ts";
import type { Stops } from "./stops.ts";
import { tooManyReaders } from "./stream-readers.ts";

export interface ConnectionContext {
  /** Returns a cursor at the start of a reader. Throws `NOT_FOUND` for a principal without read access. */
  cursor(principal: Principal, start: CursorStart): FrameCursor;
  readers: Pick<SocketReaders<Frame>, "open" | "answer" | "acknowledge" | "closed">;
  startTurn(principal: Principal, input: StartTurn): Promise<StartedTurn>;
  /** Resolves when the result is recorded, now or before. */
  submitResult(principal: Principal, frame: Extract<ClientFrame, { type: "tool.result" }>): Promise<void>;
  /** Resolves when the answer is recorded, now or before. */
  approve(principal: Principal, frame: Extract<ClientFrame, { type: "approval.resolve" }>): Promise<void>;
  claims: Pick<Claims, "claim">;
  stops: Pick<Stops, "cancelTurn" | "cancel" | "resume">;
  /** Returns the number of open connections, including a new connection. */
  connections(): number;
  clock: Pick<Clock, "now">;
}

export function openConnection(
  ports: ConnectionContext,
  client: Client,
  principal: Principal,
  { from, acks = false, ...filter }: Partial<SocketOptions> = {},
): void {
  const refuse = (error: unknown, closeCode?: number) => {
    const { code, retriable } = sendLast(ports, client, error);
    client.close(closeCode ?? (retriable ? CONTINUE_LATER_CLOSE : NOT_FOUND_CLOSE), code);
  };
  if (ports.connections() > MAX_READERS) {
    refuse(tooManyReaders(), FLOOD_CLOSE);
    return;
  }
  if (hasExpired(principal, ports.clock.now())) {
    closeUnauthorized(client);
    return;
  }
  try {
    if (Object.keys(filter).length > 0) client.setState({ principal, flow: { ...NEW_FLOW, acks }, filter });
    ports.readers.open(client, principal, ports.cursor(principal, { from, filter }), acks);
  } catch (error) {
    ports.readers.closed(client);
    refuse(error);
  }
}

/** Reports whether a message may be read. Closes a connection that has expired or exceeds its allowance. */
export function admit(ports: ConnectionContext, client: Client, message: WSMessage): boolean {
  return admitMessage(client, message, ports.clock.now(), {
    expired: () => closeUnauthorized(client),
    flooded(error) {
      sendLast(ports, client, error);
      client.close(FLOOD_CLOSE, error.code);
    },
  });
}

/** Handles a message that was admitted. */
export async function receiveFrame(
  ports: ConnectionContext,
  client: Client,
  message: WSMessage,
): Promise<void> {
  let ref = refInHead(message);
  try {
    const value = parseMessage(message);
    ref = refOf(value);
    const frame = parseClientFrame(value);
    if (frame.type === "conversation.cancel" || frame.type === "conversation.resume") ref = frame.type;
    // SAFETY: `openConnection` wrote this state; the SDK's type only makes it readonly.
    const principal = client.state?.principal as Principal | undefined;
    if (principal === undefined)
      throw new DramatisError("UNAUTHENTICATED", "The connection has no principal. Connect again.");
    switch (frame.type) {
      case "ping":
        ports.readers.answer(client, ephemeralFrame("pong", {}, {}, ports.clock.now()));
        return;
      case "ack":
        // A due acknowledgement costs no allowance. Nor does the first claim of a waiting call.
        if (ports.readers.acknowledge(client, frame.mark)) giveBack(client);
        return;
      case "turn.start":
        await startTurn(ports, client, principal, frame);
        return;
      case "tool.result":
        await ports.submitResult(principal, frame);
        return;
      case "tool.claim": {
        const { operationId } = frame;
        const isNew = client.state?.claims?.includes(operationId) !== true;
        const granted = ports.claims.claim(client, principal, operationId);
        if (granted && isNew) giveBack(client);
        const answer = ephemeralFrame("tool.claimed", { granted }, { operationId }, ports.clock.now());
        ports.readers.answer(client, answer);
        return;
      }
      case "approval.resolve":
        await ports.approve(principal, frame);
        return;
      case "turn.cancel":
        await ports.stops.cancelTurn(principal, frame.turnId, reasonOf(frame));
        return;
      case "conversation.cancel":
        await ports.stops.cancel(principal, reasonOf(frame));
        return;
      case "conversation.resume":
        await ports.stops.resume(principal, reasonOf(frame));
        return;
      default:
        frame satisfies never;
    }
  } catch (error) {
    const data = { ...toWire(error), ...defined({ ref }) };
    ports.readers.answer(client, ephemeralFrame("error", data, {}, ports.clock.now()));
  }
}

function reasonOf({ reason }: StopOptions): StopOptions {
  return defined({ reason });
}

async function startTurn(
  ports: ConnectionContext,
  client: Client,
  principal: Principal,
  { v: _v, type: _type, id: clientId, ...input }: Extract<ClientFrame, { type: "turn.start" }>,
): Promise<void> {
  const turn = { ...input, idempotencyKey: clientId };
  const { repeated, turnId, messageId } = await ports.startTurn(principal, turn);
  // A client that repeats a message has not seen its frame, and recorded frames are not published twice.
  if (!repeated) return;
  const ids = { turnId, messageId };
  ports.readers.answer(client, ephemeralFrame("message.user", { clientId }, ids, ports.clock.now()));
}

/** Sends an error to a connection that the caller closes next, and returns the error. */
function sendLast(ports: ConnectionContext, client: Client, error: unknown): WireError {
  const wire = toWire(error);
  try {
    client.send(JSON.stringify(ephemeralFrame("error", wire, {}, ports.clock.now())));
  } catch {
    // The socket closed a moment ago; its client resumes from its last `seq`.
  }
  return wire;
}

/** Returns an error as clients see it. Logs unexpected errors. */
function toWire(error: unknown): WireError {
  if (!(error instanceof DramatisError)) console.error(error);
  return wireError(toErrorData(error));
}
