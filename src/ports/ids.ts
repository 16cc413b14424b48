/** The source of identifiers. */
export interface Ids {
  /** Returns a new ULID: 26 characters of Crockford's base 32 that sort by creation. */
  ulid(): string;
}
