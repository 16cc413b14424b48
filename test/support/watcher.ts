/** A watcher of a conversation, by the published client. It records all received frames and displayed texts. */
import {
  type ConversationConnection,
  connectConversation,
  type Frame,
  type LiveConversation,
  textOf,
  visibleMessages,
} from "../../src/client/index.ts";

export class Watcher implements Disposable {
  /** URL of each attempt to connect. */
  readonly addresses: URL[] = [];
  /** All frames, in the order of arrival. */
  readonly frames: Frame[] = [];
  /** Texts of the agent's messages after each change. */
  readonly shown: string[][] = [];
  readonly #connection: ConversationConnection;

  constructor(host: string, conversationId: string) {
    const { addresses, frames } = this;
    class RecordingWebSocket extends WebSocket {
      constructor(url: string, protocols?: string | string[]) {
        super(url, protocols);
        addresses.push(new URL(url));
        this.addEventListener("message", ({ data }) => frames.push(JSON.parse(String(data))));
      }
    }
    this.#connection = connectConversation({ host, id: conversationId, WebSocket: RecordingWebSocket });
    this.#connection.subscribe(() => {
      const texts = agentTexts(this.#connection.getSnapshot());
      if (texts.join() !== this.shown.at(-1)?.join()) this.shown.push(texts);
    });
  }

  until(condition: (state: LiveConversation) => boolean): Promise<LiveConversation> {
    return new Promise((resolve) => {
      const look = () => {
        const state = this.#connection.getSnapshot();
        if (!condition(state)) return;
        stop();
        resolve(state);
      };
      const stop = this.#connection.subscribe(look);
      look();
    });
  }

  [Symbol.dispose](): void {
    this.#connection.close();
  }
}

/** Returns the complete and partial texts of the agent in a state. */
export function agentTexts(state: LiveConversation): string[] {
  return visibleMessages(state).flatMap(({ role, content }) => (role === "agent" ? [textOf(content)] : []));
}
