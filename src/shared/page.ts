/** One page of a list: what HTTP lists answer under their resource's name. */
export interface Page<Item> {
  items: Item[];
  /** Give it back to get the next page; absent on the last. */
  nextCursor?: string;
}

export interface PageOptions {
  /** 1 to 200; 50 when absent. */
  limit?: number;
  cursor?: string;
  order?: "asc" | "desc";
}
