/**
 * The text of a message, for protocols that cannot withdraw sent text. When a model call is repeated (`message.reset`), the text starts
 * again.
 *
 * PREFIX-1  The sent text is a prefix of the message's text, or the reader gets an error.
 * PREFIX-2  After a restart, text is held back while it repeats the sent text. It is sent as soon as it extends the sent text.
 * PREFIX-3  Blank text is not sent, so a repeated call may replace a blank reply.
 */

/** The text to send now; `null` = the message no longer begins with the sent text. */
export type Piece = string | null;

export class SentText {
  #sent = "";
  #text = "";

  /** Adds text at `offset`, in UTF-16 units. Text that was added before is ignored. Text after a gap is ignored: the complete text follows. */
  add(offset: number, text: string): Piece {
    if (offset > this.#text.length) return "";
    this.#text = this.#text.slice(0, offset) + text + this.#text.slice(offset + text.length);
    return this.#text.trim() === "" && this.#sent === "" ? "" : this.#send();
  }

  reset(): void {
    this.#text = "";
  }

  /** Withdraws the sent text, for a protocol that can. Returns the text to send instead. */
  restart(): string {
    this.#sent = this.#text;
    return this.#text;
  }

  complete(text: string): Piece {
    this.#text = text;
    return text.length < this.#sent.length ? null : this.#send();
  }

  #send(): Piece {
    if (!this.#text.startsWith(this.#sent)) return this.#sent.startsWith(this.#text) ? "" : null;
    const piece = this.#text.slice(this.#sent.length);
    this.#sent = this.#text;
    return piece;
  }
}
