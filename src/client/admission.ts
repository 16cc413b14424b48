/**
 * How a client is let in to a server: with which token, and whether and when it comes back after it was sent away.
 *
 * ADMIT-1  A token is asked for at each attempt to connect.
 * ADMIT-2  A connection closed with 4401 is tried once more, if a new token can be asked for. Refused again, without a
 *          frame in between, the client stays away.
 * ADMIT-3  After 4429 the next attempt waits.
 */
import { BEARER_PREFIX, FLOOD_CLOSE, SUBPROTOCOL, UNAUTHORIZED_CLOSE } from "../protocol/frames.ts";
import { isFinalClose } from "./resume.ts";

/** A bearer token, or how to get one. */
export type Token = string | (() => string | Promise<string>);

/** How long a client stays away after it sent too much, in milliseconds. */
const FLOOD_PAUSE_MS = 5_000;

export class Login {
  token: Token | undefined;
  #refusals = 0;
  #notBefore = 0;

  // No parameter property: programs of this repository import the client as it is, and Node only strips types.
  constructor(token: Token | undefined) {
    this.token = token;
  }

  /** The subprotocols of the next attempt; resolves when it may be made. */
  readonly protocols = async (): Promise<string[]> => {
    const wait = this.#notBefore - Date.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    const token = await currentToken(this.token);
    return token === undefined ? [SUBPROTOCOL] : [SUBPROTOCOL, `${BEARER_PREFIX}${token}`];
  };

  /** The server has said something: the client is in. */
  entered(): void {
    this.#refusals = 0;
  }

  /** Whether to come back after a connection was closed. Ask once for each. */
  readonly returnsAfter = ({ code }: { code: number }): boolean => {
    switch (code) {
      case UNAUTHORIZED_CLOSE:
        this.#refusals += 1;
        return typeof this.token === "function" && this.#refusals === 1;
      case FLOOD_CLOSE:
        this.#notBefore = Date.now() + FLOOD_PAUSE_MS;
        return true;
      default:
        return !isFinalClose(code);
    }
  };
}

/** The token to use now. */
export async function currentToken(token: Token | undefined): Promise<string | undefined> {
  return typeof token === "function" ? token() : token;
}
