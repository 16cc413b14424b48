/** Storage operations of a run of Dramatis, its creation included. */
export interface RunCost {
  statements: number;
  rows: number;
  /** Size of its database at the end. */
  bytes: number;
}
