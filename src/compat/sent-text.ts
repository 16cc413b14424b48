/**
 * The text of a message for protocols that cannot take back what they have sent. A model call that is made again
 * (`message.reset`) begins its text anew.
 *
 * PREFIX-1  What was sent of a message is a prefix of its text, or the reader has been told that it is not.
 * PREFIX-2  Text that begins anew is held back while it repeats what was sent, and goes on seamlessly if it begins with
 *           all of it.
 * PREFIX-3  Nothing is sent before the text shows something: a reply that stays blank is replaced as a whole.
 */

/** What may be sent now; `null` = the text no longer begins with what was sent, so there is no way on. */
export type Piece = string | null;

export class SentText {
  #sent = "";
  #text = "";

  /**
   * A piece of the text at `offset`, in UTF-16 units. One that was taken before changes nothing, and neither does one
   * whose beginning is not known: the whole text comes in the end.
   */
  add(offset: number, text: string): Piece {
    if (offset > this.#text.length) return "";
    this.#text = this.#text.slice(0, offset) + text + this.#text.slice(offset + text.length);
    return this.#text.trim() === "" && this.#sent === "" ? "" : this.#send();
  }

  /** The text begins anew. */
  reset(): void {
    this.#text = "";
  }

  /** Takes back what was sent, for a protocol that can: the text that is to be sent instead. */
  restart(): string {
    this.#sent = this.#text;
    return this.#text;
  }

  /** The whole text, which stands from now on. */
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
