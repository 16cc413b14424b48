/** The source of randomness for identifiers. */
export interface Ids {
  /** A new ULID (26 characters of Crockford's base 32, sortable by creation). */
  ulid(): string;
}
