/** A list of the server, loaded page by page, and again when the page of the browser returns. */
import { defined } from "../../shared/defined.ts";
import { runtimeClock } from "../clock.ts";
import { asClientError, DramatisClientError } from "../errors.ts";
import { whenBack } from "../reconnect.ts";
import { LiveStore } from "./live-store.ts";

export interface ListState<Item> {
  /** Absent until the first answer. They stay while later requests fail, except after a refusal (SHARE-5). */
  items?: readonly Item[];
  more: boolean;
  /** The failure of the last request. */
  error?: DramatisClientError | undefined;
}

export interface ListPage {
  limit: number;
  order: "desc";
  cursor?: string;
  signal: AbortSignal;
}

export type LoadPage<Item> = (page: ListPage) => Promise<{ items: Item[]; nextCursor?: string }>;

const PAGE_SIZE = 50;

export class LiveList<Item> extends LiveStore<ListState<Item>> {
  #pages = 1;
  #request = new AbortController();
  #endWait = () => {};

  /** `everyMs`: loads again so long after each answer, while the page is visible. */
  constructor(
    private readonly load: LoadPage<Item>,
    private readonly everyMs: number,
  ) {
    super({ more: false });
  }

  /** Loads the shown pages again. */
  readonly refresh = (): void => {
    if (!this.isUsed) return;
    this.#cancel();
    this.#request = new AbortController();
    void this.#load(this.#request.signal);
  };

  /** Loads one page more. */
  readonly loadMore = (): void => {
    this.#pages += 1;
    this.refresh();
  };

  protected start(): () => void {
    this.#pages = 1;
    this.refresh();
    const leave = whenBack(this.refresh);
    return () => {
      leave();
      this.#cancel();
    };
  }

  #cancel(): void {
    this.#endWait();
    this.#request.abort();
  }

  async #load(signal: AbortSignal): Promise<void> {
    const found = await this.#firstPages(signal).catch(asClientError);
    if (signal.aborted) return;
    if (found instanceof DramatisClientError) this.fail(found);
    else this.change(found);
    this.#wait();
  }

  #wait(): void {
    this.#endWait = runtimeClock.timer(this.everyMs, () => {
      // Some runtimes, such as React Native, have no document.
      if (globalThis.document?.visibilityState === "hidden") this.#wait();
      else this.refresh();
    });
  }

  async #firstPages(signal: AbortSignal): Promise<ListState<Item>> {
    const items: Item[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < this.#pages; page += 1) {
      const found = await this.load({ limit: PAGE_SIZE, order: "desc", signal, ...defined({ cursor }) });
      items.push(...found.items);
      cursor = found.nextCursor;
      if (cursor === undefined) break;
    }
    return { items, more: cursor !== undefined, error: undefined };
  }
}
